# Reference values for competing risks: progression (event 1) or death before it (event 2) within ten years of a
# monoclonal gammopathy, survival::mgus2, with the forecasts of two cause-specific Cox models fitted to the same rows.
# From tests/reference: Rscript r/mgus2_10_years.R OUTPUT.json [mgus2_10_years.csv, to write the data too]

source("r/record.R")
for (package in c("survival", "prodlim", "riskRegression")) suppressMessages(library(package, character.only = TRUE))

given({
  complete <- subset(survival::mgus2, !is.na(mspike))
  rows <- with(complete, data.frame(time = ifelse(pstat == 1, ptime, futime), event = ifelse(pstat == 1, 1, 2 * death), age = age, sex = sex, mspike = mspike))
  model <- CSC(Hist(time, event) ~ age + sex + mspike, data = rows)
})
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) > 1L) {
  lines <- sprintf("%d,%d,%.17g", as.integer(rows$time), as.integer(rows$event), as.numeric(predictRisk(model, newdata = rows, times = 120, cause = 1)))
  writeLines(c("months,event,p", lines), arguments[2])
}
given({
  d <- read.csv("mgus2_10_years.csv")
  d$time <- d$months
  aj <- function(type) summary(survfit(Surv(time, factor(event, 0:2, c("censored", "progression", "death"))) ~ 1, data = d, conf.type = type), times = 120)
})
value("data_equal_the_model", max(abs(d$p - as.numeric(predictRisk(model, newdata = rows, times = 120, cause = 1)))) < 1e-12)
value("n", nrow(d))
value("progressions_by_120", sum(d$event == 1 & d$time <= 120))
value("deaths_by_120", sum(d$event == 2 & d$time <= 120))
value("censored_before_120", sum(d$event == 0 & d$time < 120))
value("expected", mean(d$p))

# Aalen-Johansen: states are (alive without), progression, death.
value("probability_in_state", as.numeric(aj("log")$pstate))
value("risk", aj("log")$pstate[2])
value("risk_standard_error", aj("log")$std.err[2])
value("risk_log", c(aj("log")$lower[2], aj("log")$upper[2]))
value("risk_log_log", c(aj("log-log")$lower[2], aj("log-log")$upper[2]))
value("risk_plain", c(aj("plain")$lower[2], aj("plain")$upper[2]))
value("risk_prodlim", as.numeric(predict(prodlim(Hist(time, event) ~ 1, data = d), cause = 1, times = 120)))
value("risk_prodlim_standard_error", {
  estimate <- prodlim(Hist(time, event) ~ 1, data = d)
  estimate$se.cuminc[["1"]][max(which(estimate$time <= 120))]
})
value("risk_kaplan_meier_wrongly", 1 - summary(survfit(Surv(time, event == 1) ~ 1, data = d), times = 120)$surv)
value("observed_over_expected", aj("log")$pstate[2] / mean(d$p))

# Inverse probability of censoring: an event of either kind by 120 has 1 / G(T-), those followed beyond have 1 / G(120).
given({
  censoring <- prodlim(Hist(time, event != 0) ~ 1, data = d, reverse = TRUE)
  sorted <- order(d$time, -(d$event != 0))
  lagged <- numeric(nrow(d))
  lagged[sorted] <- predictSurvIndividual(censoring, lag = 1)
  g_at_120 <- as.numeric(predict(censoring, times = 120))
  y <- as.numeric(d$event == 1 & d$time <= 120)
  w <- ifelse(d$time <= 120 & d$event != 0, 1 / lagged, ifelse(d$time > 120, 1 / g_at_120, 0))
})
value("censoring_survival_at_120", g_at_120)
value("weights_of_first_20_rows", w[1:20])
value("sum_of_weights", sum(w))
value("mean_of_weighted_events", mean(w * y))
value("brier_ipcw_by_hand", mean(w * (y - d$p)^2))
value("auroc_ipcw_by_hand", sum(outer(w * y, w * (1 - y)) * (outer(d$p, d$p, ">") + outer(d$p, d$p, "==") / 2)) / (sum(w * y) * sum(w * (1 - y))))
given({
  score <- Score(list(model = matrix(d$p)), formula = Hist(time, event) ~ 1, data = d, times = 120, cause = 1, cens.model = "km", conf.int = TRUE, null.model = TRUE, summary = "ipa")
  brier <- as.data.frame(score$Brier$score)
  auc <- as.data.frame(score$AUC$score)
})
value("brier_riskregression", brier[brier$model == "model", "Brier"])
value("brier_riskregression_interval", unlist(brier[brier$model == "model", c("lower", "upper")]))
value("brier_null_riskregression", brier[brier$model == "Null model", "Brier"])
value("brier_scaled_riskregression", brier[brier$model == "model", "IPA"])
value("auroc_riskregression", auc[auc$model == "model", "AUC"])
value("auroc_riskregression_interval", unlist(auc[auc$model == "model", c("lower", "upper")]))

# Decisions as dcurves does it: Aalen-Johansen among those at or above the threshold.
given({
  thresholds <- c(0.05, 0.1, 0.15, 0.2)
  odds <- thresholds / (1 - thresholds)
  positive <- sapply(thresholds, function(t) mean(d$p >= t))
  risk_of_positive <- sapply(thresholds, function(t) as.numeric(predict(prodlim(Hist(time, event) ~ 1, data = d[d$p >= t, ]), cause = 1, times = 120)))
})
value("thresholds", thresholds)
value("net_benefit_dcurves", positive * risk_of_positive - odds * positive * (1 - risk_of_positive))
value("net_benefit_ipcw", sapply(seq_along(thresholds), function(i) mean((d$p >= thresholds[i]) * w * (y - odds[i] * (1 - y)))))

write_record(arguments[1], c("survival", "riskRegression", "prodlim"))
