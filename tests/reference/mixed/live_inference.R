# Families, laws of residuals and inference beside us: Rscript live_inference.R data.csv answers.json
suppressMessages({library(lme4); library(glmmTMB); library(lmerTest); library(nlme); library(jsonlite)})
files <- commandArgs(trailingOnly = TRUE)
d <- read.csv(files[1]); for (column in c("g", "h", "s")) d[[column]] <- factor(d[[column]])
new <- d[c(1, 8, 1, 8), ]; new$g <- c("0", "5", "new", "new"); new$h <- c("2", "1", "2", "new"); new$e <- new$trials <- 1
tight <- glmmTMBControl(optimizer = optim, optArgs = list(method = "BFGS"), optCtrl = list(maxit = 2000, reltol = 1e-16))
quiet <- function(value) suppressWarnings(suppressMessages(value))
predicted <- function(m, type, ...) { p <- predict(m, type = type, se.fit = TRUE, ...); list(value = unname(p$fit), error = unname(p$se.fit)) }
# Ends of a profile interval: glmmTMB's likelihood, but a root to eleven digits (its own uniroot stops at 1e-4 standard errors)
roots <- function(m, parm) {
  best <- m$obj$env$last.par.best[-m$obj$env$random]; error <- sqrt(diag(vcov(m, full = TRUE)))[parm]
  short <- function(value) {
    at <- function(rest) replace(replace(best, seq_along(best)[-parm], rest), parm, value)
    found <- nlminb(best[-parm], function(rest) m$obj$fn(at(rest)), function(rest) m$obj$gr(at(rest))[-parm],
                    control = list(rel.tol = 1e-14, x.tol = 1e-12, iter.max = 500, eval.max = 500))
    found$objective - m$fit$objective - qchisq(.95, 1) / 2
  }
  sapply(c(-1, 1), function(side) quiet(uniroot(short, sort(best[parm] + side * c(.5, 6) * error), tol = 1e-11))$root)
}
of_tmb <- function(m) {
  ends <- function(parm) roots(m, parm)
  sds <- names(m$obj$par) == "theta"; scalar <- sum(sds) == length(VarCorr(m)$cond)
  list(loglik = as.numeric(logLik(m)), fixed = unname(fixef(m)$cond), se = unname(sqrt(diag(vcov(m)$cond))),
       covariance = lapply(VarCorr(m)$cond, function(v) unname(unclass(v)[seq_len(nrow(v)), , drop = FALSE])),
       size = sigma(m), zeros = if (length(fixef(m)$zi)) plogis(fixef(m)$zi[[1]]) else NULL,
       x = if (scalar) ends(2) else NULL, sds = if (scalar) exp(t(sapply(which(sds), ends))) else NULL,
       pearson = unname(residuals(m, "pearson"))[1:9], response = unname(residuals(m, "response"))[1:9],
       link = head(predicted(m, "link")$error, 9), expected = head(predicted(m, "response")$error, 9),
       new = predicted(m, "response", newdata = new, allow.new.levels = TRUE))
}
tmb <- function(formula, family, ...) of_tmb(quiet(glmmTMB(formula, d, family = family, control = tight, ...)))
bobyqa <- glmerControl(optimizer = "bobyqa", tolPwrss = 1e-13, optCtrl = list(rhoend = 1e-9, maxfun = 1e5), check.conv.grad = "ignore")
# glmmTMB's log-likelihood at glmer's estimates: a judge of both searches
judged <- function(m, t) {
  theta <- lapply(names(VarCorr(t)$cond), function(group) {
    s <- attr(VarCorr(m)[[group]], "stddev"); r <- attr(VarCorr(m)[[group]], "correlation")
    c(log(s), if (length(s) == 2) r[1, 2] / sqrt(1 - r[1, 2]^2)) })
  -as.numeric(t$obj$fn(c(fixef(m), unlist(theta))))
}
of_glmer <- function(formula, family) {
  m <- glmer(formula, d, family, control = bobyqa)
  found_by_glmer(m, judged(m, quiet(glmmTMB(formula, d, family = family, control = tight))))
}
found_by_glmer <- function(m, judged) list(loglik = as.numeric(logLik(m)), judged = judged, fixed = unname(fixef(m)), deviance = unname(residuals(m, "deviance"))[1:9])
careful <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-10, maxfun = 1e5), calc.derivs = TRUE)
# lmerTest's derivatives with steps of one size: its own steps are shares of the parameter and vanish with it
finer <- function(m) {
  deviance <- update(m, devFunOnly = TRUE); at <- unname(c(getME(m, "theta"), sigma(m))); steps <- list(eps = 1e-2, r = 4)
  curved <- numDeriv::hessian(function(u) lmerTest:::devfun_vp(at + u, deviance, TRUE), 0 * at, method.args = steps)
  slopes <- numDeriv::jacobian(function(u) lmerTest:::get_covbeta(at + u, deviance), 0 * at, method.args = steps)
  m@vcov_varpar <- 2 * solve(curved); m@Jac_list <- lapply(seq_along(at), function(i) matrix(slopes[, i], length(fixef(m))))
  m
}
linear <- function(formula) {
  m <- quiet(finer(lmerTest::lmer(formula, d, control = careful))); plain <- quiet(lme4::lmer(formula, d, control = careful))
  table <- as.data.frame(coef(summary(m))); k <- length(fixef(m))
  list(df = table$df, t = table[["t value"]], p = table[["Pr(>|t|)"]], contrast = as.list(contest1D(m, c(1, 2, rep(0, k - 2)))[1, ]),
       wald = unname(confint(plain, parm = "beta_", method = "Wald")),
       profile = unname(quiet(confint(plain, parm = "beta_", method = "profile", delta.cutoff = 1 / 64, maxpts = 2000))),
       sds = unname(quiet(confint(plain, parm = "theta_", method = "profile", oldNames = FALSE, delta.cutoff = 1 / 64, maxpts = 2000))))
}
weighted <- function(formula) {
  m <- quiet(lme4::lmer(formula, d, weights = e, control = careful)); v <- as.data.frame(VarCorr(m))
  list(criterion = REMLcrit(m), fixed = unname(fixef(m)), se = unname(sqrt(diag(as.matrix(vcov(m))))), variances = v$vcov[is.na(v$var2)])
}
# nlme by BFGS: nlminb stops 1e-5 of a variance early
long <- lmeControl(opt = "optim", optimMethod = "BFGS", msMaxIter = 1000, msTol = 1e-16, tolerance = 1e-13, niterEM = 50, msMaxEval = 5000, returnObject = TRUE)
law <- function(m) list(loglik = as.numeric(logLik(m)), fixed = unname(fixef(m)), se = unname(sqrt(diag(vcov(m)))), group = getVarCov(m)[1, 1],
  rho = if (is.null(m$modelStruct$corStruct)) NULL else unname(coef(m$modelStruct$corStruct, unconstrained = FALSE)))
# Several residual variances by glmmTMB, whose gradient is 1e-11 where nlme stops early; its own
# standard errors under REML allow for the variances' own errors
strata <- function(m) {
  own <- predict(m, type = "disp"); group <- c(VarCorr(m)$cond$g); X <- cbind(1, d$x)
  V <- group * outer(d$g, d$g, "==") + diag(own^2)
  list(loglik = as.numeric(logLik(m)), fixed = unname(fixef(m)$cond), se = sqrt(diag(solve(t(X) %*% solve(V, X)))),
       group = group, sds = as.list(tapply(own, d$s, function(same) same[1])))
}
ml <- function(formula) quiet(lme4::lmer(formula, d, REML = FALSE, control = careful))
ratio <- as.data.frame(anova(ml(y ~ x + (1 | g)), ml(y ~ x + z + (1 | g)), ml(y ~ x + z + (x | g))))
answers <- list(
  families = list(
    "binomial" = tmb(yes ~ x + (1 | g) + (1 | h), binomial),
    "trials" = of_tmb(quiet(glmmTMB(share ~ x + (x | g), d, family = binomial, weights = trials, control = tight))),
    "poisson" = tmb(count ~ x + offset(log(e)) + (x | g) + (1 | h), poisson),
    "negative-binomial" = tmb(wide ~ x + (1 | g) + (1 | h), nbinom2),
    "zero-inflated-poisson" = tmb(zip ~ x + (1 | g), poisson, ziformula = ~1),
    "zero-inflated-negative-binomial" = tmb(zinb ~ x + (1 | g), nbinom2, ziformula = ~1)),
  glmer = list(
    "binomial" = of_glmer(yes ~ x + (1 | g) + (1 | h), binomial),
    "trials" = found_by_glmer(trials <- glmer(share ~ x + (x | g), d, binomial, weights = trials, control = bobyqa),
      judged(trials, quiet(glmmTMB(share ~ x + (x | g), d, family = binomial, weights = d$trials, control = tight)))),
    "poisson" = of_glmer(count ~ x + offset(log(e)) + (x | g) + (1 | h), poisson)),
  linear = list("y ~ x + z + (1 | g)" = linear(y ~ x + z + (1 | g)), "y ~ x + (x | g)" = linear(y ~ x + (x | g)), "y ~ x + (1 | g) + (1 | h)" = linear(y ~ x + (1 | g) + (1 | h))),
  weights = weighted(y ~ x + (1 | g) + (1 | h)),
  strata = strata(quiet(glmmTMB(uneven ~ x + (1 | g), d, dispformula = ~ s, REML = TRUE, control = tight))),
  series = law(lme(serial ~ x, d, ~ 1 | g, correlation = corAR1(form = ~ t | g), control = long)),
  ratio = list(chisq = ratio$Chisq[-1], df = ratio$Df[-1], p = ratio[["Pr(>Chisq)"]][-1], aic = ratio$AIC))
write_json(answers, files[2], digits = NA, auto_unbox = TRUE, null = "null")
