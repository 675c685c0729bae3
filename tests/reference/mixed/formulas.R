# Formulas with columns made of columns, by lme4, for test_formulas.py. From this folder: Rscript formulas.R > formulas.json
suppressMessages({library(lme4); library(splines); library(jsonlite)})
d <- read.csv("panel.csv")
d$when <- as.Date("2020-01-31") + seq_len(nrow(d)) * 3
d$days <- as.numeric(d$when)
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = .2, rhoend = 1e-9, maxfun = 1e5), calc.derivs = FALSE)
one <- function(formula, data = d, ours = formula) {
  m <- suppressWarnings(suppressMessages(lmer(as.formula(formula), data, control = control)))
  list(formula = ours, criterion = REMLcrit(m), fixef = as.list(fixef(m)), new = unname(fitted(m))[1:3])
}
formulas <- c("y ~ I(x^2) + x + (1 | g)", "y ~ I(x * z) + sqrt(x) + (1 | g)", "y ~ exp(z/2) + I((x - 2)/10) + (1 | g)",
              "y ~ ns(x, df = 3) + (1 | g)", "y ~ ns(x, df = 1) + a + (1 | g)", "sqrt(y) ~ x + I(log(x) + 1) + (1 | g)",
              "y ~ a * I(x^2) + (1 | g)", "y ~ I(x > 2) + z + (1 | g)", "y ~ 0 + I(x >= 1 & z < 2) + (1 | g)",
              "y ~ I((x > 2) * z) + I(x != 3.178) + (I(z > 0.7) | g)",
              "I((y > 11) + x) ~ I(-x < -2 + z/2) + (1 | g)")
found <- lapply(formulas, one)
found[[length(found) + 1]] <- one("y ~ days + (1 | g)", ours = "y ~ days(when) + (1 | g)")
d$either <- !(d$x <= 2) | d$z == 0.24  # lme4 takes a bar within I() for a random term
found[[length(found) + 1]] <- one("y ~ either * z + (1 | g)", ours = "y ~ I(!(x <= 2) | z == 0.24) * z + (1 | g)")
found[[length(found) + 1]] <- one("y ~ x + z + a + (1 | g)", ours = "y ~ . + (1 | g)")
few <- d[c("y", "x", "z", "a", "g")]  # what R makes of a dot; lme4 itself takes groups, made columns and log(y) into it
for (fixed in c("y ~ .^2", "y ~ . + x:z", "y ~ . + I(x^2)", "y ~ .:x", "log(y) ~ . - a", "y ~ a * ."))
  found[[length(found) + 1]] <- one(paste(deparse1(formula(terms(as.formula(fixed), data = few[names(few) != "g"]))), "+ (1 | g)"),
                                    ours = paste(fixed, "+ (1 | g)"))
found[[length(found) + 1]] <- one("y ~ x + z + a + (x | g)", ours = "y ~ . + (x | g)")
cat(toJSON(found, auto_unbox = TRUE, digits = NA, pretty = TRUE), "\n")
