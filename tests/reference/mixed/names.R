# What lme4 says under its own names, for test_r_names.py: Rscript names.R DATA.csv ANSWERS.json
suppressPackageStartupMessages({library(lme4); library(jsonlite)})
given <- commandArgs(trailingOnly = TRUE)
d <- read.csv(given[1])
tell <- function(formula) {
  fit <- lmer(formula, d)
  frame <- function(x) lapply(x, function(one) list(levels = rownames(one), names = names(one), values = as.matrix(one)))
  wald <- confint(fit, parm = "beta_", method = "Wald")
  list(fixef = as.list(fixef(fit)), ranef = frame(ranef(fit, condVar = FALSE)), coef = frame(coef(fit)),
       VarCorr = lapply(VarCorr(fit), function(one) unname(matrix(one, nrow(one)))), sigma = sigma(fit),
       wald = list(names = rownames(wald), values = unname(wald)))
}
formulas <- list(y ~ x + (x | g), y ~ x + (x || g) + (1 | h), y ~ 1 + (1 | h))
write_json(lapply(formulas, tell), given[2], digits = NA, auto_unbox = TRUE)
