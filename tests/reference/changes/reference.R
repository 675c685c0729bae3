# Writes roc_data.csv, quantile_data.csv and reference.json. Run in this folder: Rscript reference.R
# Needs pROC, quantreg, jsonlite (Debian: r-cran-proc, r-cran-quantreg, r-cran-jsonlite).
suppressMessages({library(pROC); library(quantreg); library(jsonlite)})
set.seed(7); n <- 400; g <- rbinom(n, 1, .15); x1 <- g + rnorm(n); x2 <- .6 * g + rnorm(n)
x1[1:40] <- round(x1[1:40], 1); x3 <- round(x1 + .5 * rnorm(n))
d <- data.frame(g, x1, x2, x3); write.csv(d, "roc_data.csv", row.names = FALSE)
r <- lapply(c("x1", "x2", "x3"), function(v) roc(d$g, d[[v]], direction = "<", quiet = TRUE))
part <- function(r, range, ...) as.numeric(auc(r, partial.auc = 1 - range, partial.auc.focus = "specificity", ...))
# roc.test keeps the area stored in the curves unless reuse.auc = FALSE: without it partial.auc is ignored.
boot <- function(...) { t <- roc.test(r[[1]], r[[2]], method = "bootstrap", boot.n = 20000, progress = "none", ...)
  list(D = unname(t$statistic), p = t$p.value) }
s <- smooth(r[[1]], method = "binormal", n = 512)
out <- list(
  version = as.character(packageVersion("pROC")),
  auc = sapply(r, function(x) as.numeric(auc(x))),
  pauc_0_20 = sapply(r, part, c(0, .2)), pauc_10_50 = sapply(r, part, c(.1, .5)),
  mcclish_0_20 = sapply(r, part, c(0, .2), partial.auc.correct = TRUE),
  mcclish_10_50 = sapply(r, part, c(.1, .5), partial.auc.correct = TRUE),
  delong_var = sapply(r, var), delong_cov_12 = cov(r[[1]], r[[2]]),
  delong_p = roc.test(r[[1]], r[[2]], method = "delong")$p.value,
  bootstrap_auc = boot(), bootstrap_pauc = boot(partial.auc = c(1, .8), reuse.auc = FALSE),
  band = { c <- ci.se(r[[1]], specificities = c(.95, .9, .8, .5), boot.n = 20000, progress = "none"); unname(c[, c(1, 3)]) },
  binormal = list(fpr = 1 - s$specificities[c(65, 129, 257, 385)], tpr = s$sensitivities[c(65, 129, 257, 385)]))
k <- c(1, 2, 3, 4.3, 5.3, 6.2, 7.5, 8, 8, 11); v <- c(.07, .1, .1, .02, .09, .11, .105, .09, .12, .115)
t <- cor.test(v, k, method = "kendall", exact = FALSE, continuity = TRUE)
out$kendall <- list(values = v, ranks = k, tau = unname(t$estimate), p = t$p.value)
n <- 499; z1 <- rexp(n); z2 <- rbinom(n, 4, .3); y <- rpois(n, 1 + z1) + .3 * z2 + rnorm(n, sd = .2 + z1 / 3)
q <- data.frame(y, z1, z2); write.csv(q, "quantile_data.csv", row.names = FALSE)
out$quantile <- lapply(c(.02, .08, .25, .5, .75, .9, .99), function(tau) { f <- rq(y ~ z1 + z2, tau = tau, data = q)
  list(tau = tau, coef = unname(coef(f)), loss = f$rho) })
write_json(out, "reference.json", digits = 15, auto_unbox = TRUE, pretty = TRUE)
