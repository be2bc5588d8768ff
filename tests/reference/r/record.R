# Writes down numbers together with the R code that made them. Sourced by the scripts beside it.
#
# `given({...})` runs statements and records them; `value("name", expression)` evaluates the expression and records its
# value beside its text; `write_record(path)` writes it all as JSON, with the 17 digits that a double needs.

recorded <- list(given = character(), values = list())

text_of <- function(expression) {
  paste(trimws(deparse(expression, width.cutoff = 500L)), collapse = " ")
}

given <- function(statements) {
  for (statement in as.list(substitute(statements))[-1]) {
    eval(statement, globalenv())
    recorded$given <<- c(recorded$given, text_of(statement))
  }
}

value <- function(name, expression) {
  code <- substitute(expression)
  stopifnot(is.null(recorded$values[[name]]))
  recorded$values[[name]] <<- list(value = eval(code, globalenv()), command = text_of(code))
}

as_json <- function(x) {
  if (is.list(x)) {
    if (is.null(names(x))) return(sprintf("[%s]", paste(vapply(x, as_json, ""), collapse = ", ")))
    return(sprintf("{%s}", paste(sprintf("%s: %s", quoted(names(x)), vapply(x, as_json, "")), collapse = ", ")))
  }
  words <- if (is.character(x)) quoted(x) else ifelse(is.na(x), "null", sprintf("%.17g", as.numeric(x)))
  if (length(x) == 1L) words else sprintf("[%s]", paste(words, collapse = ", "))
}

quoted <- function(words) {
  sprintf("\"%s\"", gsub("\"", "\\\"", gsub("\\", "\\\\", words, fixed = TRUE), fixed = TRUE))
}

write_record <- function(path, packages) {
  versions <- vapply(packages, function(package) as.character(packageVersion(package)), "")
  entries <- sprintf("    %s: {\"value\": %s,\n      \"command\": %s}", quoted(names(recorded$values)),
                     vapply(recorded$values, function(entry) as_json(entry$value), ""),
                     vapply(recorded$values, function(entry) quoted(entry$command), ""))
  lines <- c("{",
             sprintf("  \"versions\": %s,", as_json(c(list(R = paste(R.version$major, R.version$minor, sep = ".")),
                                                     as.list(versions)))),
             sprintf("  \"given\": [\n%s\n  ],", paste("   ", quoted(recorded$given), collapse = ",\n")),
             sprintf("  \"values\": {\n%s\n  }", paste(entries, collapse = ",\n")),
             "}")
  writeLines(lines, path)
}
