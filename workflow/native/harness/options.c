/* options.c: the command line that all programs share, as a table. */
#include "harness.h"

#include <string.h>

typedef enum { TEXT, REAL, INTEGER } OptionKind;
typedef struct {
  const char *name, *fallback;
  OptionKind kind;
  size_t offset;
  double minimum;
  bool exclusive; /* `minimum` itself is not allowed */
} Option;

#define AT(member) offsetof(Options, member)
static const Option table[] = {
    {"cases", NULL, TEXT, AT(cases), 0, false},
    {"out", NULL, TEXT, AT(out), 0, false},
    {"meta", NULL, TEXT, AT(meta), 0, false},
    {"placement", NULL, TEXT, AT(placement), 0, false},
    {"cores", NULL, TEXT, AT(cores), 0, false},
    {"sync", "window", TEXT, AT(sync), 0, false},
    {"precision", "0.02", REAL, AT(precision), 0, false},
    {"min-samples", "10", INTEGER, AT(min_samples), 1, false},
    {"max-samples", "1000", INTEGER, AT(max_samples), 1, false},
    {"max-seconds", "5", REAL, AT(max_seconds), 0, true},
    {"warmup", "2", INTEGER, AT(warmup), 0, false},
    {"seed", "0", INTEGER, AT(seed), 0, false},
    {"enough-equal", "0", INTEGER, AT(enough_equal), 0, false},
};
enum { OPTIONS = sizeof table / sizeof table[0] };
static const long long max_sample_option = 100000000; /* as in the error's text */

static void set_option(Options *options, const Option *option, const char *text)
{
  void *target = (char *)options + option->offset;
  double number = 0;
  if (option->kind == TEXT) {
    *(const char **)target = text;
    return;
  }
  if (option->kind == REAL) {
    bool is_number = parse_real(text, target);
    if (is_number) number = *(double *)target;
    if (is_number && (option->exclusive ? number > option->minimum : number >= option->minimum)) return;
    user_error("--%s: found '%s', wanted a number %s %g", option->name, text, option->exclusive ? "above" : "from",
               option->minimum);
  }
  bool is_number = parse_integer(text, target);
  if (is_number) number = (double)*(long long *)target;
  bool has_limit = strcmp(option->name, "seed") != 0;
  if (!is_number || number < option->minimum || (has_limit && number > (double)max_sample_option))
    user_error("--%s: found '%s', wanted a whole number from %g%s", option->name, text, option->minimum,
               has_limit ? " to 100000000" : "");
}

Options read_options(int argc, char **argv)
{
  Options options = {0};
  for (int k = 0; k < OPTIONS; k++)
    if (table[k].fallback) set_option(&options, &table[k], table[k].fallback);
  for (int i = 1; i < argc; i++) {
    const Option *option = NULL;
    if (strncmp(argv[i], "--", 2) == 0)
      for (int k = 0; k < OPTIONS && !option; k++)
        if (strcmp(argv[i] + 2, table[k].name) == 0) option = &table[k];
    if (!option)
      user_error("unknown option '%s', wanted --cases --out [--meta --placement --cores --sync --precision --min-samples "
                 "--max-samples --max-seconds --warmup --seed --enough-equal] or --describe alone", argv[i]);
    if (++i == argc) user_error("--%s: found no value, wanted one", option->name);
    set_option(&options, option, argv[i]);
  }
  if (!options.cases) user_error("--cases: not given, wanted the case file");
  if (!options.out) user_error("--out: not given, wanted the folder for the samples");
  if (options.max_samples < options.min_samples)
    user_error("--max-samples: found %lld, wanted at least --min-samples %lld", options.max_samples,
               options.min_samples);
  return options;
}

void write_options_json(FILE *file, const Options *options)
{
  for (int k = 0; k < OPTIONS; k++) {
    const void *target = (const char *)options + table[k].offset;
    fprintf(file, "%s\n    \"%s\": ", k ? "," : "", table[k].name);
    if (table[k].kind == REAL)
      fprintf(file, "%.17g", *(const double *)target);
    else if (table[k].kind == INTEGER)
      fprintf(file, "%lld", *(const long long *)target);
    else if (*(const char *const *)target)
      write_json_string(file, *(const char *const *)target);
    else
      fputs("null", file);
  }
}
