from calibrant.validations.statistics import Statistic as Statistic
