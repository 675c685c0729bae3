# Residual variances by stratum and autoregressive residuals, by nlme and glmmTMB, for test_residuals.py.
# From this folder: Rscript residuals.R > residuals.json
suppressMessages({library(nlme); library(jsonlite)})
d <- read.csv("panel.csv", stringsAsFactors = TRUE)
d$y <- d$y + ifelse(d$b == "two", 2, 0.3) * qnorm((seq_len(nrow(d)) * 0.6180339887) %% 1)
d$t <- ave(seq_len(nrow(d)), d$g, FUN = seq_along)
d$t <- d$t + (d$t > 5)                                   # a gap of two periods in every series
e <- qnorm((seq_len(nrow(d)) * 0.7548776662) %% 1)
for (g in levels(d$g)) { at <- which(d$g == g); for (k in seq_along(at)[-1]) e[at[k]] <- 0.7 * e[at[k - 1]] + e[at[k]] }
d$z2 <- d$y + 2 * e
d$s <- factor(ifelse(seq_len(nrow(d)) %% 2 == 0, "even", "odd"))
write.csv(d[, c("g", "h", "a", "b", "s", "x", "y", "z2", "t")], "residuals.csv", row.names = FALSE, quote = FALSE)
control <- lmeControl(opt = "nlminb", msMaxIter = 1000, msTol = 1e-13, tolerance = 1e-13, niterEM = 50, msMaxEval = 5000, returnObject = TRUE)
told <- function(m, formula, asked) {
  weights <- m$modelStruct$varStruct; cor <- m$modelStruct$corStruct
  list(formula = formula, method = m$method, asked = asked, loglik = as.numeric(logLik(m)), aic = AIC(m), names = names(fixef(m)),
       fixef = unname(fixef(m)), se = unname(sqrt(diag(vcov(m)))), sigma = m$sigma, fitted = unname(fitted(m))[1:3],
       sds = if (is.null(weights)) NULL else as.list(m$sigma * coef(weights, unconstrained = FALSE, allCoef = TRUE)),
       rho = if (is.null(cor)) NULL else unname(coef(cor, unconstrained = FALSE)),
       covariance = unname(matrix(as.numeric(getVarCov(m)), ncol(getVarCov(m)))), u = unname(unlist(ranef(m)[1, ])))
}
strata <- function(fixed, random, by, method, formula)
  told(lme(fixed, d, random, weights = varIdent(form = by), method = method, control = control), formula, list(residual_by = all.vars(by)))
series <- function(fixed, random, form, method, formula, names)
  told(lme(fixed, d, random, correlation = corAR1(form = form), method = method, control = control), formula, list(series = names, time = "t"))
found <- list(
  strata(y ~ x, ~ 1 | g, ~ 1 | b, "REML", "y ~ x + (1 | g)"), strata(y ~ x + a, ~ 1 | g, ~ 1 | b, "ML", "y ~ x + a + (1 | g)"),
  strata(y ~ x, ~ x | g, ~ 1 | a, "REML", "y ~ x + (x | g)"),
  series(z2 ~ x, ~ 1 | g, ~ t | g, "REML", "z2 ~ x + (1 | g)", list("g")), series(z2 ~ x + b, ~ 1 | g, ~ t | g, "ML", "z2 ~ x + b + (1 | g)", list("g")),
  series(z2 ~ x, ~ 1 | g, ~ t | g/s, "REML", "z2 ~ x + (1 | g)", list("g", "s")),
  series(z2 ~ x + t, ~ t | g, ~ t | g/s, "REML", "z2 ~ x + t + (t | g)", list("g", "s")))
plain <- lme(y ~ x, d, ~ 1 | g, method = "ML", control = control)
more <- update(plain, weights = varIdent(form = ~ 1 | b))
ratio <- anova(plain, more)
suppressPackageStartupMessages(library(glmmTMB))
m <- glmmTMB(y ~ x + (1 | g) + (1 | h), d, dispformula = ~ 0 + b, control = glmmTMBControl(optCtrl = list(iter.max = 1e4, eval.max = 1e4)))
crossed <- list(loglik = as.numeric(logLik(m)), fixef = unname(fixef(m)$cond), variances = unname(exp(fixef(m)$disp)),
                random = unname(sapply(VarCorr(m)$cond, function(v) v[1, 1])))
ends <- confint(profile(m, parm = "beta_", npts = 40))[1:2, ]
ends <- lapply(split(ends, rownames(ends)), as.numeric)
cat(toJSON(list(crossed = crossed, profile = ends, fits = found, ratio = list(chisq = ratio$L.Ratio[2], p = ratio$`p-value`[2])), auto_unbox = TRUE, digits = NA, pretty = TRUE, null = "null"), "\n")
