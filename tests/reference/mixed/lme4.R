# Reference values from lme4. From this folder: Rscript lme4.R ../../../../shared/data/lmm
# Writes panel.csv (made here, for formulas that no public data set needs) and lme4.json.
suppressMessages({library(lme4); library(splines); library(jsonlite)})
folder <- commandArgs(trailingOnly = TRUE)[1]
public <- function(name, ...) {
  data <- read.csv(gzfile(file.path(folder, paste0(name, ".csv.gz"))))
  for (column in c(...)) data[[column]] <- factor(data[[column]])
  data
}
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-8, maxfun = 1e5), calc.derivs = FALSE)
fit <- function(data, formula, reml = TRUE, source = "panel", more = FALSE) {
  f <- as.formula(formula)
  m <- suppressWarnings(suppressMessages(lmer(f, data, REML = reml, control = control)))
  v <- as.data.frame(VarCorr(m)); r <- ranef(m, condVar = TRUE)
  out <- list(data = source, formula = formula, reml = reml, criterion = if (reml) REMLcrit(m) else deviance(m),
    aic = AIC(m), bic = BIC(m), fixef = as.list(fixef(m)), se = as.list(sqrt(diag(as.matrix(vcov(m))))),
    variances = v[, c("grp", "var1", "var2", "vcov")], singular = isSingular(m),
    ranef = lapply(r, function(x) as.matrix(head(x, 5))), levels = lapply(r, function(x) head(rownames(x), 5)),
    cond_var = if (grepl("||", formula, fixed = TRUE)) NULL else lapply(r, function(x) attr(x, "postVar")[, , 1:2, drop = FALSE]),
    fitted = as.numeric(fitted(m))[1:5], marginal = as.numeric(predict(m, re.form = NA))[1:5])
  if (more) {
    out$hat <- as.numeric(hatvalues(m))[1:5]
    ci <- suppressMessages(confint(m, parm = "theta_", oldNames = FALSE))
    out$intervals <- lapply(split(ci, rownames(ci)), as.numeric)
  }
  out
}
set.seed(11); n <- 240
panel <- data.frame(g = sample(sprintf("g%02d", 1:12), n, TRUE), h = sample(sprintf("h%d", 1:8), n, TRUE),
  a = sample(c("low", "mid", "top"), n, TRUE), b = sample(c("one", "two"), n, TRUE), x = round(rnorm(n, 3), 3), z = round(rexp(n) + .1, 3))
panel <- panel[!(panel$a == "top" & panel$b == "two"), ]  # an empty cell: a:b is rank deficient
u <- rnorm(12, sd = .8); s <- rnorm(12, sd = .3); k <- rnorm(8, sd = .6); gi <- as.integer(factor(panel$g)); hi <- as.integer(factor(panel$h))
panel$y <- round(10 + .5 * panel$x + (panel$a == "mid") + u[gi] + s[gi] * panel$x + k[hi] + rnorm(nrow(panel)), 4)
panel$w <- round(sin(7 * seq_len(nrow(panel))) + .2 * panel$x, 4)
panel$x2 <- 2 * panel$x - 1
write.csv(panel, "panel.csv", row.names = FALSE, quote = FALSE)
s <- public("lme4_sleepstudy", "Subject"); d <- public("lme4_Dyestuff"); p <- public("lme4_Penicillin")
a <- public("lme4_Pastes"); e <- public("mlmRev_Exam", "school"); i <- public("lme4_InstEval", "s", "d", "dept")
out <- list(
  fit(d, "Yield ~ 1 + (1 | Batch)", source = "lme4_Dyestuff", more = TRUE),
  fit(d, "Yield ~ 1 + (1 | Batch)", FALSE, "lme4_Dyestuff", TRUE),
  fit(s, "Reaction ~ Days + (1 | Subject)", source = "lme4_sleepstudy", more = TRUE),
  fit(s, "Reaction ~ Days + (Days | Subject)", source = "lme4_sleepstudy", more = TRUE),
  fit(s, "Reaction ~ Days + (Days || Subject)", source = "lme4_sleepstudy"),
  fit(p, "diameter ~ 1 + (1 | plate) + (1 | sample)", source = "lme4_Penicillin", more = TRUE),
  fit(a, "strength ~ 1 + (1 | batch/cask)", source = "lme4_Pastes", more = TRUE),
  fit(e, "normexam ~ standLRT + sex + (1 | school)", source = "mlmRev_Exam", more = TRUE),
  fit(i, "y ~ service + (1 | d)", source = "lme4_InstEval"),
  fit(i, "y ~ service + (1 | s) + (1 | d)", source = "lme4_InstEval"))
formulas <- c("y ~ x * a + (1 | g)", "y ~ 0 + a + x + (1 | g)", "y ~ a:b + (1 | g)", "y ~ 0 + b + a:x + (1 | g)", "y ~ a/x + (1 | g)",
    "y ~ (a + b + x)^2 + (1 | g)", "y ~ poly(x, 3) + (1 | g)", "y ~ bs(x, df = 5) + (1 | g)", "log(y) ~ log(z) + scale(x) + (1 | g)",
    "y ~ x + x2 + b + (1 | g)", "w ~ x + (1 | g)", "w ~ x + (1 | g) + (1 | h)", "y ~ x + (x | g)", "y ~ x + (x || g)", "y ~ x + (0 + x | g)",
    "y ~ b + (0 + b | g)", "y ~ x + (a | g)", "y ~ x + (1 | g) + (1 | h)", "y ~ x + (x | g) + (1 | h)", "y ~ x + (1 | g/h)",
    "y ~ x + (1 | g:h)", "y ~ x + (1 | g/h) + (1 | h)", "y ~ 1 + (1 | a) + (1 | b) + (1 | g)")
for (formula in formulas) out[[length(out) + 1]] <- fit(panel, formula)
for (formula in formulas[seq(1, length(formulas), 4)]) out[[length(out) + 1]] <- fit(panel, formula, FALSE)
write_json(out, "lme4.json", digits = NA, auto_unbox = TRUE)
