# Inference about fixed effects by lme4 and lmerTest, for test_inference.py. From this folder: Rscript inference.R > inference.json
suppressMessages({library(lme4); library(lmerTest); library(jsonlite)})
d <- read.csv("panel.csv")
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-10, maxfun = 1e5), calc.derivs = TRUE)
formulas <- c("y ~ x + a + (1 | g)", "y ~ x + a + (x | g)", "y ~ x + (1 | g) + (1 | h)", "y ~ x * a + z + (1 | g)")
one <- function(formula) {
  m <- suppressMessages(lmerTest::lmer(as.formula(formula), d, control = control))
  plain <- suppressMessages(lme4::lmer(as.formula(formula), d, control = control))
  table <- as.data.frame(coef(summary(m)))
  k <- length(fixef(m)); contrast <- c(1, 2, rep(0, k - 2))
  list(formula = formula, names = rownames(table), df = table$df, t = table[["t value"]], p = table[["Pr(>|t|)"]],
       contrast = as.list(contest1D(m, contrast)[1, ]),
       profile = unname(suppressMessages(suppressWarnings(confint(plain, parm = "beta_", method = "profile")))),
       wald = unname(confint(plain, parm = "beta_", method = "Wald")),
       se_marginal = sqrt(diag(as.matrix(model.matrix(plain) %*% vcov(plain) %*% t(model.matrix(plain)))))[1:5])
}
ml <- function(formula) suppressMessages(lme4::lmer(as.formula(formula), d, REML = FALSE, control = control))
ratio <- as.data.frame(anova(ml("y ~ x + (1 | g)"), ml("y ~ x + a + (1 | g)"), ml("y ~ x + a + (x | g)")))
cat(toJSON(list(fits = lapply(formulas, one), ratio = ratio, version = as.character(packageVersion("lmerTest"))),
           auto_unbox = TRUE, digits = NA, pretty = TRUE), "\n")
