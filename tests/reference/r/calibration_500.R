# Reference values for 500 forecasts of a binary outcome. From tests/reference: Rscript r/calibration_500.R OUTPUT.json

source("r/record.R")
for (package in c("rms", "pROC", "MASS", "sandwich")) suppressMessages(library(package, character.only = TRUE))

given({
  d <- read.csv("calibration_500.csv")
  y <- d$y
  p <- d$p
  l <- qlogis(p)
  n <- length(y)
  to_the_digit <- glm.control(epsilon = 1e-15, maxit = 100)
  fit <- glm(y ~ l, family = binomial, control = to_the_digit)
  unit_slope <- glm(y ~ offset(l), family = binomial, control = to_the_digit)
  as_forecast <- glm(y ~ offset(l) - 1, family = binomial)
  harrell <- suppressWarnings(rms::val.prob(p, y, pl = FALSE))
})
value("n", n)
value("events", sum(y))

# Slope and intercept. glm() stops early unless told otherwise, and its standard errors are those of the step before.
value("slope", coef(fit)[["l"]])
value("intercept", coef(fit)[["(Intercept)"]])
value("slope_wald", confint.default(fit)["l", ])
value("intercept_wald", confint.default(fit)["(Intercept)", ])
value("slope_lrm", coef(lrm(y ~ l))[["l"]])
value("slope_wald_lrm", confint.default(lrm(y ~ l))["l", ])
value("intercept_at_unit_slope", coef(unit_slope)[["(Intercept)"]])
value("intercept_at_unit_slope_wald", confint.default(unit_slope)["(Intercept)", ])
value("covariance_of_intercept_and_slope", as.vector(vcov(fit)))
# confint() of MASS interpolates the profile by a spline: its limits hold to some 7 digits. The roots are exact.
value("slope_profile_by_spline", suppressMessages(confint(fit))["l", ])
value("slope_profile_by_spline_default_control", suppressMessages(confint(glm(y ~ l, family = binomial)))["l", ])
value("intercept_profile_by_spline", suppressMessages(confint(fit))["(Intercept)", ])
value("intercept_at_unit_slope_profile_by_spline", suppressMessages(confint(unit_slope)))
given({
  rise <- function(slope) deviance(glm(y ~ offset(slope * l), family = binomial, control = to_the_digit)) - deviance(fit) - qchisq(0.95, 1)
  rise_of_intercept <- function(a) deviance(glm(y ~ l - 1 + offset(rep(a, n)), family = binomial, control = to_the_digit)) - deviance(fit) - qchisq(0.95, 1)
  rise_at_unit_slope <- function(a) sum(binomial()$dev.resids(y, plogis(a + l), 1)) - deviance(unit_slope) - qchisq(0.95, 1)
  root <- function(f, between) uniroot(f, between, tol = 1e-14)$root
})
value("slope_profile", c(root(rise, c(0.4, 0.8)), root(rise, c(0.85, 1.3))))
value("intercept_profile", c(root(rise_of_intercept, c(-0.3, 0.2)), root(rise_of_intercept, c(0.22, 0.8))))
value("intercept_at_unit_slope_profile", c(root(rise_at_unit_slope, c(-0.3, 0.2)), root(rise_at_unit_slope, c(0.23, 0.8))))

# Likelihood-ratio tests.
value("weak_calibration_chi2", deviance(as_forecast) - deviance(fit))
value("in_the_large_chi2", deviance(as_forecast) - deviance(unit_slope))
value("slope_chi2", deviance(unit_slope) - deviance(fit))
value("weak_calibration_p", pchisq(deviance(as_forecast) - deviance(fit), 2, lower.tail = FALSE))
value("in_the_large_p", pchisq(deviance(as_forecast) - deviance(unit_slope), 1, lower.tail = FALSE))
value("slope_p", pchisq(deviance(unit_slope) - deviance(fit), 1, lower.tail = FALSE))

# Discrimination. lrm() sorts fitted rates into cells of 0.0002 before it counts pairs.
given({
  delong <- as.numeric(pROC::ci.auc(y, p, quiet = TRUE))
  delong_se <- sqrt(pROC::var(pROC::roc(y, p, quiet = TRUE)))
})
value("auroc", delong[2])
value("auroc_delong", delong[c(1, 3)])
value("auroc_standard_error", delong_se)
value("auroc_logit_delong", plogis(qlogis(delong[2]) + c(-1, 1) * qnorm(0.975) * delong_se / (delong[2] * (1 - delong[2]))))
given({
  case <- which(y == 1)
  control <- which(y == 0)
  placement <- numeric(n)
  placement[case] <- sapply(case, function(i) mean((p[i] > p[control]) + (p[i] == p[control]) / 2))
  placement[control] <- sapply(control, function(i) mean((p[case] > p[i]) + (p[case] == p[i]) / 2))
  by_cluster <- function(x) as.numeric(rowsum(x, seq_len(n) %% 50))
  excess_of_cases <- by_cluster((y == 1) * (placement - delong[2]))
  excess_of_controls <- by_cluster((y == 0) * (placement - delong[2]))
  clusters_of <- function(rows) length(unique(rows %% 50))
  factor_of <- function(clusters) clusters / (clusters - 1)
})
# Clusters of row %% 50, by hand: sums over clusters with one factor G / (G - 1), and as Obuchowski (1997) has it, with
# the number of clusters that hold cases, that of clusters that hold controls (one here holds a single kind), and all.
value("auroc_standard_error_clustered", sqrt(50 / 49 * sum((excess_of_cases / length(case) + excess_of_controls / length(control))^2)))
value("auroc_standard_error_obuchowski", sqrt(factor_of(clusters_of(case)) * sum(excess_of_cases^2) / length(case)^2 + factor_of(clusters_of(control)) * sum(excess_of_controls^2) / length(control)^2 + 2 * factor_of(50) * sum(excess_of_cases * excess_of_controls) / (length(case) * length(control))))
value("auroc_of_lrm_fit", lrm.fit(l, y)$stats[["C"]])
value("auroc_of_val_prob", harrell[["C (ROC)"]])
value("somers_dxy", Hmisc::somers2(p, y)[["Dxy"]])

# Brier score; the interval is that of a mean.
value("brier", mean((p - y)^2))
value("brier_wald", mean((p - y)^2) + c(-1, 1) * qnorm(0.975) * sd((p - y)^2) / sqrt(n))
value("brier_scaled", 1 - mean((p - y)^2) / (mean(y) * (1 - mean(y))))
given({
  uncertainty <- mean(y) * (1 - mean(y))
  influence <- ((p - y)^2 - mean((p - y)^2)) / uncertainty - mean((p - y)^2) * (1 - 2 * mean(y)) * (y - mean(y)) / uncertainty^2
})
value("brier_scaled_delta", 1 - mean((p - y)^2) / uncertainty + c(-1, 1) * qnorm(0.975) * sd(influence) / sqrt(n))
value("log_loss", -mean(y * log(p) + (1 - y) * log(1 - p)))
value("spiegelhalter_z", harrell[["S:z"]])
value("spiegelhalter_p", harrell[["S:p"]])

# Curves: what is left between curve and forecast, at each row. Quantiles are of type 7.
given({
  gaps <- function(curve) c(mean(abs(curve - p)), quantile(abs(curve - p), c(0.5, 0.9)), max(abs(curve - p)))
  at_forecasts <- function(line, x) approx(line, xout = x, ties = mean)$y
  spline <- function(x, knots) fitted(glm(y ~ rcspline.eval(x, nk = knots, inclx = TRUE), family = binomial, control = to_the_digit))
})
value("loess_ici_e50_e90_emax", gaps(predict(loess(y ~ p))))
value("loess_direct_ici_e50_e90_emax", gaps(predict(loess(y ~ p, control = loess.control(surface = "direct")))))
value("lowess_of_logit_ici_e50_e90_emax", gaps(at_forecasts(lowess(l, y, iter = 0), l)))
value("lowess_ici_e50_e90_emax", gaps(at_forecasts(lowess(p, y, iter = 0), p)))
value("lowess_delta_0_ici_e50_e90_emax", gaps(at_forecasts(lowess(p, y, iter = 0, delta = 0), p)))
value("lowess_of_logit_delta_0_ici_e50_e90_emax", gaps(at_forecasts(lowess(l, y, iter = 0, delta = 0), l)))
value("rcs_3_of_logit_ici_e50_e90_emax", gaps(spline(l, 3)))
value("rcs_4_of_logit_ici_e50_e90_emax", gaps(spline(l, 4)))
value("rcs_5_of_logit_ici_e50_e90_emax", gaps(spline(l, 5)))
value("rcs_5_ici_e50_e90_emax", gaps(spline(p, 5)))
value("rcs_5_knots_of_logit", attr(rcspline.eval(l, nk = 5), "knots"))
value("isotonic_ici_e50_e90_emax", gaps(isoreg(p[order(p)], y[order(p)])$yf[rank(p)]))
value("logistic_ici_e50_e90_emax", gaps(fitted(fit)))
value("eci", 100 * mean((predict(loess(y ~ p)) - p)^2))
value("eci_direct", 100 * mean((predict(loess(y ~ p, control = loess.control(surface = "direct"))) - p)^2))
value("eci_rcs_5_of_logit", 100 * mean((spline(l, 5) - p)^2))
value("grid", seq(0.05, 0.95, 0.05))
value("loess_at_grid", predict(loess(y ~ p), data.frame(p = seq(0.05, 0.95, 0.05))))
value("loess_standard_error_at_grid", predict(loess(y ~ p), data.frame(p = seq(0.05, 0.95, 0.05)), se = TRUE)$se.fit)
value("loess_direct_at_grid", predict(loess(y ~ p, control = loess.control(surface = "direct")), data.frame(p = seq(0.05, 0.95, 0.05))))
value("loess_direct_standard_error_at_grid", predict(loess(y ~ p, control = loess.control(surface = "direct")), data.frame(p = seq(0.05, 0.95, 0.05)), se = TRUE)$se.fit)
value("lowess_of_logit_at_grid", at_forecasts(lowess(l, y, iter = 0), qlogis(seq(0.05, 0.95, 0.05))))
given({
  knots <- attr(rcspline.eval(l, nk = 5), "knots")
  basis <- data.frame(rcspline.eval(l, knots, inclx = TRUE))
  curve <- glm(y ~ ., data = cbind(y = y, basis), family = binomial, control = to_the_digit)
  on_grid <- predict(curve, data.frame(rcspline.eval(qlogis(seq(0.05, 0.95, 0.05)), knots, inclx = TRUE)), se.fit = TRUE)
})
value("rcs_5_of_logit_at_grid", plogis(on_grid$fit))
value("rcs_5_of_logit_lower_at_grid", plogis(on_grid$fit - qnorm(0.975) * on_grid$se.fit))
value("rcs_5_of_logit_upper_at_grid", plogis(on_grid$fit + qnorm(0.975) * on_grid$se.fit))

# Observed over expected events.
value("observed_over_expected", sum(y) / sum(p))
value("observed_over_expected_poisson", as.numeric(poisson.test(sum(y), sum(p))$conf.int))
value("observed_over_expected_binomial", as.numeric(binom.test(sum(y), n)$conf.int) / mean(p))
value("observed_over_expected_log", sum(y) / sum(p) * exp(c(-1, 1) * qnorm(0.975) * sqrt((1 - mean(y)) / sum(y))))
value("observed_over_expected_log_poisson", sum(y) / sum(p) * exp(c(-1, 1) * qnorm(0.975) * sqrt(1 / sum(y))))

# Decisions, by the formulae of dcurves: a forecast of at least the threshold is treated.
given({
  thresholds <- c(0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.5, 0.75, 0.9)
  odds <- thresholds / (1 - thresholds)
  share_true <- sapply(thresholds, function(t) mean(p >= t & y == 1))
  share_false <- sapply(thresholds, function(t) mean(p >= t & y == 0))
  rate_true <- share_true / mean(y)
  rate_false <- share_false / (1 - mean(y))
  net_benefit <- share_true - odds * share_false
  net_benefit_all <- mean(y) - odds * (1 - mean(y))
})
value("thresholds", thresholds)
value("net_benefit", net_benefit)
value("net_benefit_all", net_benefit_all)
value("net_benefit_standard_error", sapply(seq_along(thresholds), function(i) sqrt(mean(((p >= thresholds[i]) * (y - odds[i] * (1 - y)) - net_benefit[i])^2) / n)))
value("standardised_net_benefit", net_benefit / mean(y))
value("standardised_net_benefit_all", net_benefit_all / mean(y))
value("interventions_avoided", (net_benefit - net_benefit_all) / odds)
value("net_benefit_at_prevalence_0.1", rate_true * 0.1 - odds * rate_false * 0.9)
value("net_benefit_all_at_prevalence_0.1", 0.1 - odds * 0.9)

# Clusters: row %% 50, rows counted from 1. HC0 is the plain sandwich; "CR1" multiplies by G / (G - 1).
given({
  cluster <- seq_len(n) %% 50
  sandwich_cr1 <- sandwich::vcovCL(fit, cluster = cluster, type = "HC0", cadjust = TRUE)
  sandwich_cr0 <- sandwich::vcovCL(fit, cluster = cluster, type = "HC0", cadjust = FALSE)
  sandwich_hc0 <- sandwich::sandwich(fit)
})
value("slope_standard_error_clustered", sqrt(sandwich_cr1["l", "l"]))
value("slope_standard_error_clustered_without_factor", sqrt(sandwich_cr0["l", "l"]))
value("slope_standard_error_rows", sqrt(sandwich_hc0["l", "l"]))
value("intercept_standard_error_clustered", sqrt(sandwich_cr1["(Intercept)", "(Intercept)"]))
value("slope_standard_error_rms_robcov", sqrt(rms::robcov(lrm(y ~ l, x = TRUE, y = TRUE), cluster)$var["l", "l"]))
value("intercept_at_unit_slope_standard_error_clustered", sqrt(sandwich::vcovCL(unit_slope, cluster = cluster, type = "HC0")[1, 1]))

# Weights: 1, 2 and 3 in turn. Rows repeated as often give the same estimates and likelihood.
given({
  w <- 1 + (seq_len(n) - 1) %% 3
  many <- rep(seq_len(n), w)
  weighted <- glm(y ~ l, family = binomial, weights = w, control = to_the_digit)
  weighted_unit <- glm(y ~ offset(l), family = binomial, weights = w, control = to_the_digit)
})
value("weighted_slope", coef(weighted)[["l"]])
value("weighted_intercept", coef(weighted)[["(Intercept)"]])
value("weighted_slope_wald", confint.default(weighted)["l", ])
value("weighted_intercept_at_unit_slope", coef(weighted_unit)[["(Intercept)"]])
value("weighted_slope_standard_error_sandwich", sqrt(sandwich::sandwich(weighted)["l", "l"]))
value("repeated_slope", coef(glm(y[many] ~ l[many], family = binomial, control = to_the_digit))[[2]])
value("weighted_brier", sum(w * (p - y)^2) / sum(w))
value("weighted_auroc", as.numeric(pROC::auc(y[many], p[many], quiet = TRUE)))
value("weighted_observed_over_expected", sum(w * y) / sum(w * p))
value("weighted_loess_ici", weighted.mean(abs(predict(loess(y ~ p, weights = w)) - p), w))
value("weighted_loess_direct_ici", weighted.mean(abs(predict(loess(y ~ p, weights = w, control = loess.control(surface = "direct"))) - p), w))
value("weighted_rcs_5_of_logit_ici", weighted.mean(abs(fitted(glm(y ~ rcspline.eval(l, knots = knots, inclx = TRUE), family = binomial, weights = w, control = to_the_digit)) - p), w))
value("weighted_net_benefit", sapply(seq_along(thresholds), function(i) sum(w * (p >= thresholds[i]) * (y - odds[i] * (1 - y))) / sum(w)))

given({
  weighted_rise <- function(slope) deviance(glm(y ~ offset(slope * l), family = binomial, weights = w, control = to_the_digit)) - deviance(weighted) - qchisq(0.95, 1)
})
value("weighted_slope_profile", c(root(weighted_rise, c(0.5, 0.85)), root(weighted_rise, c(0.87, 1.3))))
value("repeated_auroc_delong", as.numeric(pROC::ci.auc(y[many], p[many], quiet = TRUE))[c(1, 3)])

# Forecasts rounded to 2 digits, so that many are equal.
given({
  few <- round(p, 2)
  few_l <- qlogis(few)
  gaps_of_few <- function(curve) c(mean(abs(curve - few)), quantile(abs(curve - few), c(0.5, 0.9)), max(abs(curve - few)))
  inside <- few > 0 & few < 1
})
value("rounded_loess_ici_e50_e90_emax", gaps_of_few(predict(loess(y ~ few))))
value("rounded_loess_direct_ici_e50_e90_emax", gaps_of_few(predict(loess(y ~ few, control = loess.control(surface = "direct")))))
value("rounded_lowess_ici_e50_e90_emax", gaps_of_few(at_forecasts(lowess(few, y, iter = 0), few)))
value("rounded_auroc_delong", as.numeric(pROC::ci.auc(y, few, quiet = TRUE)))
value("rounded_to_0_or_1", sum(!inside))
value("rounded_slope_without_0_and_1", coef(glm(y[inside] ~ few_l[inside], family = binomial, control = to_the_digit))[[2]])
value("rounded_intercept_at_unit_slope_without_0_and_1", coef(glm(y[inside] ~ offset(few_l[inside]), family = binomial, control = to_the_digit))[[1]])

value("val_prob_names", names(harrell))
value("val_prob", as.numeric(harrell))

write_record(commandArgs(trailingOnly = TRUE)[1], c("rms", "Hmisc", "pROC", "MASS", "sandwich"))
