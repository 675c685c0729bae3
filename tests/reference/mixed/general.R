# Generalised mixed models by lme4 and glmmTMB, for test_general.py: Rscript general.R general.csv > general.json
# The data are simulated here, once, with R's generator, and written beside the numbers.
suppressMessages({library(lme4); library(glmmTMB); library(jsonlite)})
set.seed(21)
n <- 600; G <- 30; H <- 12
d <- data.frame(g = sample(G, n, TRUE), h = sample(H, n, TRUE), x = round(rnorm(n), 4), e = round(runif(n, 0.5, 3), 3))
u <- rnorm(G); s <- 0.5 * rnorm(G); v <- 0.6 * rnorm(H)
eta <- 0.3 + 0.6 * d$x + u[d$g] + s[d$g] * d$x + v[d$h]
d$trials <- sample(1:8, n, TRUE)
d$hits <- rbinom(n, d$trials, plogis(eta)); d$share <- d$hits / d$trials
d$yes <- rbinom(n, 1, plogis(eta))
d$count <- rpois(n, d$e * exp(eta * 0.7))
d$wide <- rnbinom(n, mu = exp(eta * 0.7), size = 1.5)
extra <- rbinom(n, 1, 0.3)
d$zip <- ifelse(extra == 1, 0, rpois(n, exp(0.5 + eta * 0.5)))
d$zinb <- ifelse(extra == 1, 0, rnbinom(n, mu = exp(1 + eta * 0.5), size = 3))
write.csv(d, commandArgs(TRUE)[1], row.names = FALSE)
tight <- glmerControl(optimizer = "nloptwrap", tolPwrss = 1e-13, optCtrl = list(xtol_abs = 1e-12, ftol_abs = 1e-12, maxeval = 1e5), check.conv.grad = "ignore")
of_lme4 <- function(m) list(
  loglik = as.numeric(logLik(m)), fixed = as.list(fixef(m)), se = as.list(sqrt(diag(as.matrix(vcov(m))))),
  covariance = lapply(VarCorr(m), function(v) unname(unclass(v)[seq_len(nrow(v)), , drop = FALSE])))
of_tmb <- function(m) list(
  loglik = as.numeric(logLik(m)), fixed = as.list(fixef(m)$cond), se = as.list(sqrt(diag(vcov(m)$cond))),
  covariance = lapply(VarCorr(m)$cond, function(v) unname(unclass(v)[seq_len(nrow(v)), , drop = FALSE])),
  size = sigma(m), zeros = if (length(fixef(m)$zi)) plogis(fixef(m)$zi[[1]]) else NULL)
tmb <- function(formula, family, ...) of_tmb(glmmTMB(formula, d, family = family, control = glmmTMBControl(optCtrl = list(iter.max = 1000, eval.max = 1000, rel.tol = 1e-14, x.tol = 1e-12)), ...))
found <- list(
  "binomial" = of_lme4(glmer(yes ~ x + (1 | g) + (1 | h), d, binomial, control = tight)),
  "trials" = of_lme4(glmer(share ~ x + (x | g), d, binomial, weights = trials, control = tight)),
  "poisson" = of_lme4(glmer(count ~ x + offset(log(e)) + (x | g) + (1 | h), d, poisson, control = tight)),
  "points" = of_lme4(glmer(yes ~ x + (1 | g), d, binomial, nAGQ = 15, control = tight)),
  "tmb binomial" = tmb(yes ~ x + (1 | g) + (1 | h), binomial),
  "tmb poisson" = tmb(count ~ x + offset(log(e)) + (x | g) + (1 | h), poisson),
  "negative-binomial" = tmb(wide ~ x + (1 | g) + (1 | h), nbinom2),
  "zero-inflated-poisson" = tmb(zip ~ x + (1 | g), poisson, ziformula = ~1),
  "zero-inflated-negative-binomial" = tmb(zinb ~ x + (1 | g), nbinom2, ziformula = ~1),
  versions = list(lme4 = as.character(packageVersion("lme4")), glmmTMB = as.character(packageVersion("glmmTMB"))))
cat(toJSON(found, auto_unbox = TRUE, digits = NA, pretty = TRUE), "\n")
