# Reference values for censored outcomes: a Cox model fitted to patients from Rotterdam forecasts recurrence or death
# within five years for patients of the German Breast Cancer Study Group, both from R's package survival.
# From tests/reference: Rscript r/gbsg_5_years.R OUTPUT.json [gbsg_5_years.csv, to write the data too]

source("r/record.R")
for (package in c("survival", "rms", "riskRegression")) suppressMessages(library(package, character.only = TRUE))

given({
  until_5 <- function(d) transform(d, event = ifelse(time > 5, 0, event), time = pmin(time, 5))
  nodes_cut <- function(nodes) cut(nodes, c(-1, 0, 3, 51), c("0", "1-3", ">3"))
  rotterdam5 <- with(survival::rotterdam, until_5(data.frame(time = pmax(rtime, ifelse(recur == 1, 0, dtime)) / 365.25, event = pmax(recur, death), size = size, nodes = nodes_cut(nodes), grade3 = grade == 3)))
  gbsg_all <- with(survival::gbsg, data.frame(time = rfstime / 365.25, event = status, size = cut(size, c(-1, 20, 50, 500), levels(rotterdam5$size)), nodes = nodes_cut(nodes), grade3 = grade == 3))
  cox <- coxph(Surv(time, event) ~ size + nodes + grade3, data = rotterdam5, x = TRUE, y = TRUE)
})
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) > 1L) {
  lines <- with(gbsg_all, sprintf("%.17g,%d,%.17g,%.17g", time, event, as.numeric(predictRisk(cox, newdata = gbsg_all, times = 5)), predict(cox, newdata = gbsg_all, type = "lp")))
  writeLines(c("time,event,p,linear_predictor", lines), arguments[2])
}
given({
  d <- read.csv("gbsg_5_years.csv")
  d5 <- until_5(d)
})
value("data_equal_the_model", max(abs(d$p - as.numeric(predictRisk(cox, newdata = gbsg_all, times = 5)))) < 1e-12)
value("n", nrow(d))
value("events_by_5", sum(d$event == 1 & d$time <= 5))
value("censored_before_5", sum(d$event == 0 & d$time < 5))
value("expected", mean(d$p))

# Kaplan-Meier risk at five years, with limits on the scales that survfit() knows.
given({
  at_5 <- function(type) summary(survfit(Surv(time, event) ~ 1, data = d, conf.type = type), times = 5)
})
value("risk", 1 - at_5("log")$surv)
value("risk_standard_error", at_5("log")$std.err)
value("risk_log", 1 - c(at_5("log")$upper, at_5("log")$lower))
value("risk_log_log", 1 - c(at_5("log-log")$upper, at_5("log-log")$lower))
value("risk_plain", 1 - c(at_5("plain")$upper, at_5("plain")$lower))
value("risk_logit", 1 - c(at_5("logit")$upper, at_5("logit")$lower))

# As CalibrationCurves' valProbSurvival() does it; its vignette prints 1.04 [0.93, 1.17], 1.07 [0.82, 1.32],
# .0272, .0297, .0610 and .0691 for these data.
value("observed_over_expected", (1 - at_5("log")$surv) / mean(d$p))
value("observed_over_expected_calibrationcurves", (1 - at_5("log")$surv) / mean(d$p) * exp(c(-1, 1) * qnorm(0.975) / sqrt(at_5("log")$n.event)))
value("observed_over_expected_log_log", (1 - c(at_5("log-log")$upper, at_5("log-log")$lower)) / mean(d$p))
given({
  slope <- coxph(Surv(time, event) ~ linear_predictor, data = d5)
  curve <- cph(Surv(time, event) ~ rcs(linear_predictor, 3), x = TRUE, y = TRUE, surv = TRUE, data = d5)
  gap <- abs(1 - survest(curve, times = 5, newdata = d5)$surv - d$p)
})
value("cox_slope", coef(slope)[[1]])
value("cox_slope_wald", confint(slope)[1, ])
value("cox_rcs_3_ici_e50_e90_emax", c(mean(gap), quantile(gap, c(0.5, 0.9)), max(gap)))
value("concordance_harrell", concordance(Surv(time, event) ~ linear_predictor, d5, reverse = TRUE)$concordance)
value("concordance_uno", concordance(Surv(time, event) ~ linear_predictor, d5, reverse = TRUE, timewt = "n/G2")$concordance)

# Inverse probability of censoring: 1 / G(T-) for those whose event came by 5, 1 / G(5) for those still followed after 5,
# nothing for those censored before. Events come before censorings at the same time (prodlim's reverse estimate).
given({
  censoring <- prodlim::prodlim(prodlim::Hist(time, event) ~ 1, data = d, reverse = TRUE)
  g_before <- prodlim::predictSurvIndividual(censoring, lag = 1)
  g_at_5 <- as.numeric(predict(censoring, times = 5))
  y <- as.numeric(d$event == 1 & d$time <= 5)
  sorted <- order(d$time, -d$event)
  lagged <- numeric(nrow(d))
  lagged[sorted] <- g_before
  w <- ifelse(y == 1, 1 / lagged, ifelse(d$time > 5, 1 / g_at_5, 0))
})
value("censoring_survival_at_5", g_at_5)
value("weights_of_first_20_rows", w[1:20])
value("sum_of_weights", sum(w))
value("mean_of_weighted_events", mean(w * y))
value("brier_ipcw_by_hand", mean(w * (y - d$p)^2))
value("brier_ipcw_normalised", sum(w * (y - d$p)^2) / sum(w))
value("auroc_ipcw_by_hand", sum(outer(w * y, w * (1 - y)) * (outer(d$p, d$p, ">") + outer(d$p, d$p, "==") / 2)) / (sum(w * y) * sum(w * (1 - y))))
given({
  score <- Score(list(model = matrix(d$p)), formula = Surv(time, event) ~ 1, data = d, times = 5, cens.model = "km", conf.int = TRUE, null.model = TRUE, summary = "ipa")
  brier <- as.data.frame(score$Brier$score)
  auc <- as.data.frame(score$AUC$score)
})
value("brier_riskregression", brier[brier$model == "model", "Brier"])
value("brier_riskregression_standard_error", brier[brier$model == "model", "se"])
value("brier_riskregression_interval", unlist(brier[brier$model == "model", c("lower", "upper")]))
value("brier_null_riskregression", brier[brier$model == "Null model", "Brier"])
value("brier_scaled_riskregression", brier[brier$model == "model", "IPA"])
value("auroc_riskregression", auc[auc$model == "model", "AUC"])
value("auroc_riskregression_standard_error", auc[auc$model == "model", "se"])
value("auroc_riskregression_interval", unlist(auc[auc$model == "model", c("lower", "upper")]))

# Weighted by w: what every measure becomes.
given({
  l <- qlogis(d$p)
  to_the_digit <- glm.control(epsilon = 1e-15, maxit = 100)
  recalibrated <- suppressWarnings(glm(y ~ l, family = binomial, weights = w, control = to_the_digit))
  unit_slope <- suppressWarnings(glm(y ~ offset(l), family = binomial, weights = w, control = to_the_digit))
})
value("ipcw_slope", coef(recalibrated)[[2]])
value("ipcw_intercept", coef(recalibrated)[[1]])
value("ipcw_intercept_at_unit_slope", coef(unit_slope)[[1]])
value("ipcw_observed_over_expected", sum(w * y) / sum(w * d$p))

# Decisions as dcurves does it for Surv(): Kaplan-Meier among those at or above the threshold.
given({
  thresholds <- c(0.2, 0.3, 0.4, 0.5, 0.6)
  odds <- thresholds / (1 - thresholds)
  positive <- sapply(thresholds, function(t) mean(d$p >= t))
  risk_of_positive <- sapply(thresholds, function(t) 1 - summary(survfit(Surv(time, event) ~ 1, data = d[d$p >= t, ]), times = 5)$surv)
})
value("thresholds", thresholds)
value("net_benefit_dcurves", positive * risk_of_positive - odds * positive * (1 - risk_of_positive))
value("net_benefit_all_dcurves", 1 - at_5("log")$surv - odds * at_5("log")$surv)
value("net_benefit_ipcw", sapply(seq_along(thresholds), function(i) mean((d$p >= thresholds[i]) * w * (y - odds[i] * (1 - y)))))

# Twelve rows with events and censorings at the same times, and a censoring at the horizon, 5, itself.
given({
  tiny <- data.frame(time = c(1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 6, 7), event = c(1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0), p = c(0.9, 0.2, 0.3, 0.8, 0.4, 0.6, 0.5, 0.7, 0.35, 0.55, 0.45, 0.1))
  tiny_y <- as.numeric(tiny$event == 1 & tiny$time <= 5)
  tiny_censoring <- prodlim::prodlim(prodlim::Hist(time, event) ~ 1, data = tiny, reverse = TRUE)
  tiny_lagged <- numeric(12)
  tiny_lagged[order(tiny$time, -tiny$event)] <- prodlim::predictSurvIndividual(tiny_censoring, lag = 1)
  tiny_w <- ifelse(tiny_y == 1, 1 / tiny_lagged, ifelse(tiny$time > 5, 1 / as.numeric(predict(tiny_censoring, times = 5)), 0))
  tiny_score <- Score(list(model = matrix(tiny$p)), formula = Surv(time, event) ~ 1, data = tiny, times = 5, cens.model = "km", conf.int = FALSE, null.model = FALSE)
})
value("tiny_time", tiny$time)
value("tiny_event", tiny$event)
value("tiny_p", tiny$p)
value("tiny_weights", tiny_w)
value("tiny_risk", 1 - summary(survfit(Surv(time, event) ~ 1, data = tiny), times = 5)$surv)
value("tiny_mean_of_weighted_events", mean(tiny_w * tiny_y))
value("tiny_brier_riskregression", tiny_score$Brier$score$Brier)
value("tiny_brier_by_hand", mean(tiny_w * (tiny_y - tiny$p)^2))
value("tiny_auroc_riskregression", tiny_score$AUC$score$AUC)
value("tiny_auroc_by_hand", sum(outer(tiny_w * tiny_y, tiny_w * (1 - tiny_y)) * outer(tiny$p, tiny$p, ">")) / (sum(tiny_w * tiny_y) * sum(tiny_w * (1 - tiny_y))))

write_record(arguments[1], c("survival", "rms", "riskRegression", "prodlim"))
