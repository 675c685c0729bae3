# Fits with sum and helmert contrasts by lme4, one of counts by glmmTMB, for test_contrasts.py. From this folder: Rscript contrasts.R > contrasts.json
suppressMessages({library(lme4); library(jsonlite)})
d <- read.csv("panel.csv", stringsAsFactors = TRUE)
d$count <- round(d$y)
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-9, maxfun = 1e5), calc.derivs = FALSE)
told <- function(m, formula, named) {
  list(formula = formula, contrasts = named, loglik = as.numeric(logLik(m)), names = names(fixef(m)),
       fixef = unname(fixef(m)), se = unname(sqrt(diag(as.matrix(vcov(m))))), fitted = unname(fitted(m))[1:3],
       variances = unname(as.data.frame(VarCorr(m))$vcov), u = unname(as.matrix(ranef(m)[[1]])[1, ]))
}
one <- function(formula, named = NULL, data = d) {
  given <- if (is.null(named)) NULL else lapply(named, function(kind) paste0("contr.", kind))
  m <- suppressWarnings(suppressMessages(lmer(as.formula(formula), data, control = control, contrasts = given)))
  told(m, formula, named)
}
holes <- subset(d, !(h == "h1" & b == "two") & !(h == "h3" & b == "one"))
found <- list(
  one("y ~ C(h, sum) + (1 | g)"), one("y ~ C(h, helmert) + x + (1 | g)"), one("y ~ C(h, treatment) + (1 | g)"),
  one("y ~ C(h, sum) * x + (1 | g)"), one("y ~ C(h, helmert) * C(b, sum) + (1 | g)"),
  one("y ~ C(h, sum) * b * x + (1 | g)"), one("y ~ 0 + C(h, sum) + C(b, helmert) + (1 | g)"),
  one("y ~ C(h, sum):b + (1 | g)"), one("y ~ x + C(h, sum):x + (1 | g)"), one("y ~ a:b + C(h, sum):a + (1 | g)"),
  one("y ~ h * b + (1 | g)", list(h = "sum", b = "helmert")), one("y ~ h + a + (1 | g)", list(h = "sum")),
  one("y ~ x + (C(b, sum) | g)"), one("y ~ C(b, sum) + x + (C(b, helmert) + x | g) + (1 | a)"))
holed <- list(one("y ~ C(h, sum) * b + (1 | g)", NULL, holes), one("y ~ C(h, helmert) * C(b, sum) + (1 | g)", NULL, holes))
counts <- suppressPackageStartupMessages(glmmTMB::glmmTMB(count ~ C(h, sum) * C(b, helmert) + (1 | g), d, family = poisson))
known <- glmmTMB::fixef(counts)$cond
counts <- list(formula = "count ~ C(h, sum) * C(b, helmert) + (1 | g)", names = names(known), fixef = unname(known),
               se = unname(sqrt(diag(vcov(counts)$cond))))
cat(toJSON(list(fits = found, holed = holed, counts = counts),
           auto_unbox = TRUE, digits = NA, pretty = TRUE, null = "null"), "\n")
