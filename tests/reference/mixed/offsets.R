# Offsets of linear models by lme4, for test_offsets.py. From this folder: Rscript offsets.R > offsets.json
suppressMessages({library(lme4); library(jsonlite)})
d <- transform(read.csv("panel.csv"), e = 1 + x^2)
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-10, maxfun = 1e5), calc.derivs = FALSE)
told <- function(m, formula) {
  v <- as.data.frame(VarCorr(m))
  list(formula = formula, fixef = as.list(fixef(m)), se = unname(sqrt(diag(as.matrix(vcov(m))))),
       variances = v$vcov[is.na(v$var2)], loglik = as.numeric(logLik(m)), fitted = unname(fitted(m))[1:5],
       residuals = unname(residuals(m))[1:5])
}
new <- d[5:1, ]
m <- lmer(y ~ x + offset(w) + (1 | g), d, control = control)
argument <- lmer(y ~ x + (1 | g), d, offset = w, REML = FALSE, control = control)
slopes <- lmer(y ~ x + offset(log(e)) + (x | g), d, control = control)
weighted <- lmer(y ~ x + offset(z) + (1 | g), d, weights = e, control = control)
found <- list(formula = told(m, "y ~ x + offset(w) + (1 | g)"), argument = told(argument, "y ~ x + (1 | g)"),
              slopes = told(slopes, "y ~ x + offset(log(e)) + (x | g)"),
              weighted = told(weighted, "y ~ x + offset(z) + (1 | g)"),
              new = list(conditional = unname(predict(m, new)), marginal = unname(predict(m, new, re.form = NA))))
cat(toJSON(found, digits = 14, auto_unbox = TRUE, pretty = TRUE), "\n")
