# Gamma and beta by glmmTMB, for test_continuous.py. From this folder: Rscript continuous.R > continuous.json
# The data are simulated here, once, with R's generator, and written beside the numbers.
suppressMessages({library(glmmTMB); library(jsonlite)})
set.seed(23)
n <- 400; G <- 20; H <- 8
d <- data.frame(g = sample(G, n, TRUE), h = sample(H, n, TRUE), x = round(rnorm(n), 4), e = round(runif(n, 0.5, 3), 3), w = sample(3, n, TRUE))
u <- rnorm(G); s <- 0.5 * rnorm(G); v <- 0.6 * rnorm(H)
eta <- 0.3 + 0.6 * d$x + 0.7 * (u[d$g] + s[d$g] * d$x) + 0.5 * v[d$h]
d$cost <- signif(rgamma(n, shape = 2.5, rate = 2.5 / (1000 * d$e * exp(eta))), 8)
d$even <- signif(rgamma(n, shape = 4000, rate = 4000 / exp(eta)), 10)
p <- plogis(eta - 0.5)
d$part <- pmin(pmax(signif(rbeta(n, 6 * p, 6 * (1 - p)), 8), 1e-8), 1 - 1e-8)
d$sharp <- signif(rbeta(n, 3000 * p, 3000 * (1 - p)), 10)
d$rough <- pmin(pmax(signif(rbeta(n, 0.5 * p, 0.5 * (1 - p)), 8), 1e-8), 1 - 1e-8)
write.csv(d, "continuous.csv", row.names = FALSE)
for (name in c("g", "h")) d[[name]] <- factor(d[[name]])
new <- data.frame(g = c("1", "17", "new", "new"), h = c("3", "5", "3", "new"), x = c(0.4, -1.3, 0.4, 2.1), e = 1, w = 1)
tight <- glmmTMBControl(optCtrl = list(iter.max = 1000, eval.max = 1000, rel.tol = 1e-15, x.tol = 1e-13))
tmb <- function(formula, family, ...) glmmTMB(formula, d, family = family, control = tight, ...)
# Ends of a profile: glmmTMB's likelihood, but a root to eleven digits (its own uniroot stops at 1e-4 standard errors)
ends <- function(m, parm) {
  best <- m$obj$env$last.par.best[-m$obj$env$random]; error <- sqrt(diag(vcov(m, full = TRUE)))[parm]
  short <- function(value) {
    at <- function(rest) replace(replace(best, seq_along(best)[-parm], rest), parm, value)
    found <- nlminb(best[-parm], function(rest) m$obj$fn(at(rest)), function(rest) m$obj$gr(at(rest))[-parm],
                    control = list(rel.tol = 1e-14, x.tol = 1e-12, iter.max = 500, eval.max = 500))
    found$objective - m$fit$objective - qchisq(.95, 1) / 2
  }
  sapply(c(-1, 1), function(side) suppressWarnings(uniroot(short, sort(best[parm] + side * c(.5, 6) * error), tol = 1e-11))$root)
}
of <- function(m) {
  asked <- function(...) { found <- predict(m, se.fit = TRUE, ...); list(value = unname(found$fit), error = unname(found$se.fit)) }
  by <- function(type) list(fitted = lapply(asked(type = type), head, 8),
    new = asked(newdata = new, type = type, allow.new.levels = TRUE), marginal = asked(newdata = new[1:2, ], type = type, re.form = NA))
  own <- which(names(m$obj$par) %in% c("betad", "betadisp")); scalar <- sum(names(m$obj$par) == "theta") == length(VarCorr(m)$cond)
  list(loglik = as.numeric(logLik(m)), fixed = as.list(fixef(m)$cond), se = as.list(sqrt(diag(vcov(m)$cond))),
    covariance = lapply(VarCorr(m)$cond, function(v) unname(unclass(v)[seq_len(nrow(v)), , drop = FALSE])),
    sigma = sigma(m), x = if (scalar) ends(m, 2) else NULL,
    ends = if (scalar) exp(ends(m, own)) else NULL, response = head(unname(residuals(m, "response")), 8),
    deviance = if (family(m)$family == "Gamma") { y <- model.response(m$frame); head(sign(y - fitted(m)) * sqrt(Gamma()$dev.resids(y, fitted(m), 1)), 8) } else NULL,
    link = by("link"), mean = by("response"))
}
found <- list(
  "gamma" = of(tmb(cost ~ x + offset(log(e)) + (1 | g) + (1 | h), Gamma(link = "log"))),
  "gamma, a slope" = of(tmb(cost ~ x + offset(log(e)) + (x | g), Gamma(link = "log"))),
  "gamma, even" = of(tmb(even ~ x + (x | g) + (1 | h), Gamma(link = "log"))),
  "gamma, weights" = of(glmmTMB(cost ~ x + offset(log(e)) + (1 | g), d, family = Gamma(link = "log"), weights = w, control = tight)),
  "beta" = of(tmb(part ~ x + (1 | g) + (1 | h), beta_family())),
  "beta, a slope" = of(tmb(part ~ x + (x | g), beta_family())),
  "beta, sharp" = of(tmb(sharp ~ x + (x | g) + (1 | h), beta_family())),
  "beta, rough" = of(tmb(rough ~ x + (1 | g), beta_family())),
  "beta, weights" = of(glmmTMB(part ~ x + (1 | g), d, family = beta_family(), weights = w, control = tight)),
  versions = list(glmmTMB = as.character(packageVersion("glmmTMB"))))
cat(toJSON(found, auto_unbox = TRUE, digits = NA, pretty = TRUE, null = "null"), "\n")
