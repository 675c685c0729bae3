# Fits formulas beside us. Rscript live.R data.csv formulas.json answers.json
suppressMessages({library(lme4); library(jsonlite)})
files <- commandArgs(trailingOnly = TRUE)
data <- read.csv(files[1]); for (column in c("g", "h", "k")) data[[column]] <- factor(data[[column]])
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-8, maxfun = 1e5), calc.derivs = FALSE)
answers <- lapply(fromJSON(files[2], simplifyVector = FALSE), function(asked) {
  m <- suppressWarnings(suppressMessages(lmer(as.formula(asked$formula), data, REML = asked$reml, control = control)))
  v <- as.data.frame(VarCorr(m))
  list(criterion = if (asked$reml) REMLcrit(m) else deviance(m), fixef = as.list(fixef(m)), se = sqrt(diag(as.matrix(vcov(m)))),
       residual = sigma(m)^2, variances = sort(v$vcov[is.na(v$var2)]), singular = isSingular(m),
       groups = I(names(ranef(m))),
       fitted = as.numeric(fitted(m)), hat = as.numeric(hatvalues(m)))
})
write_json(answers, files[3], digits = NA, auto_unbox = TRUE)
