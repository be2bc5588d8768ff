# Reference values for validation by the bootstrap on the rows that a model was fitted to: low birth weight, MASS::birthwt.
# From tests/reference: Rscript r/optimism.R OUTPUT.json [birthwt.csv, to write the data too]

source("r/record.R")
for (package in c("rms", "MASS", "pROC")) suppressMessages(library(package, character.only = TRUE))

given({
  rows <- with(MASS::birthwt, data.frame(low = low, age = age, lwt = lwt, black = 1 * (race == 2), other = 1 * (race == 3), smoke = smoke, ptl = ptl, ht = ht, ui = ui))
})
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) > 1L) write.csv(rows, arguments[2], row.names = FALSE, quote = FALSE)

# validate() draws each resample by one call of sample(): drawn in advance from the same seed, they are the same rows.
given({
  d <- read.csv("birthwt.csv")
  n <- nrow(d)
  resamples <- 20
  set.seed(20)
  draws <- lapply(seq_len(resamples), function(i) sample(n, replace = TRUE))
  model <- lrm(low ~ age + lwt + black + other + smoke + ptl + ht + ui, data = d, x = TRUE, y = TRUE)
  set.seed(20)
  validated <- validate(model, B = resamples)
  set.seed(20)
  calibrated <- calibrate(model, B = resamples, predy = seq(0.1, 0.7, 0.1))
})
value("resampled_rows_counted_from_1", draws)
value("validate_rows", rownames(validated))
value("validate_apparent", as.numeric(validated[, "index.orig"]))
value("validate_training", as.numeric(validated[, "training"]))
value("validate_test", as.numeric(validated[, "test"]))
value("validate_optimism", as.numeric(validated[, "optimism"]))
value("validate_corrected", as.numeric(validated[, "index.corrected"]))
value("calibrate_at", as.numeric(calibrated[, "predy"]))
value("calibrate_apparent", as.numeric(calibrated[, "calibrated.orig"]))
value("calibrate_corrected", as.numeric(calibrated[, "calibrated.corrected"]))

# The same by hand, with fits to the last digit.
given({
  to_the_digit <- glm.control(epsilon = 1e-15, maxit = 100)
  fitted_to <- function(rows) glm(low ~ ., family = binomial, data = rows, control = to_the_digit)
  measures_of <- function(y, p) {
    l <- qlogis(p)
    line <- coef(glm(y ~ l, family = binomial, control = to_the_digit))
    gap <- abs(predict(loess(y ~ p, control = loess.control(surface = "direct"))) - p)
    c(auroc = as.numeric(pROC::auc(y, p, quiet = TRUE, direction = "<")), brier = mean((p - y)^2),
      brier_scaled = 1 - mean((p - y)^2) / (mean(y) * (1 - mean(y))), slope = line[[2]], intercept = line[[1]],
      intercept_at_unit_slope = coef(glm(y ~ offset(l), family = binomial, control = to_the_digit))[[1]],
      observed_over_expected = sum(y) / sum(p), loess_direct_ici = mean(gap), loess_direct_emax = max(gap),
      net_benefit_0.3 = mean((p >= 0.3) * (y - 3 / 7 * (1 - y))))
  }
  risk <- function(model, rows) predict(model, rows, type = "response")
  apparent <- measures_of(d$low, risk(fitted_to(d), d))
  training <- sapply(draws, function(i) measures_of(d$low[i], risk(fitted_to(d[i, ]), d[i, ])))
  test <- sapply(draws, function(i) measures_of(d$low, risk(fitted_to(d[i, ]), d)))
  folds <- seq_len(n) %% 10
  left_out <- numeric(n)
  for (fold in 0:9) left_out[folds == fold] <- risk(fitted_to(d[folds != fold, ]), d[folds == fold, ])
})
value("measures", names(apparent))
value("apparent", apparent)
value("training", rowMeans(training))
value("test", rowMeans(test))
value("optimism", rowMeans(training - test))
value("optimism_standard_deviation", apply(training - test, 1, sd))
value("corrected", apparent - rowMeans(training - test))
value("cross_validated_row_modulo_10", measures_of(d$low, left_out))
value("first_5_apparent_forecasts", as.numeric(risk(fitted_to(d), d))[1:5])

write_record(arguments[1], c("rms", "MASS", "pROC"))
