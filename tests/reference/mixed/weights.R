# Prior weights by lme4, for test_weights.py. From this folder: Rscript weights.R > weights.json
suppressMessages({library(lme4); library(jsonlite)})
d <- read.csv("general.csv")
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-10, maxfun = 1e5), calc.derivs = FALSE)
one <- function(formula, reml) {
  m <- lmer(as.formula(formula), d, weights = e, REML = reml, control = control)
  v <- as.data.frame(VarCorr(m))
  list(formula = formula, reml = reml, criterion = if (reml) REMLcrit(m) else deviance(m), fixef = as.list(fixef(m)),
       se = unname(sqrt(diag(as.matrix(vcov(m))))), variances = v$vcov[is.na(v$var2)], hat = unname(hatvalues(m))[1:5],
       pearson = unname(residuals(m, "pearson", scaled = TRUE))[1:5])
}
cat(toJSON(list(one("share ~ x + (1 | g)", TRUE), one("share ~ x + (1 | g) + (1 | h)", TRUE), one("share ~ x + (x | g)", FALSE)),
           auto_unbox = TRUE, digits = NA, pretty = TRUE), "\n")
