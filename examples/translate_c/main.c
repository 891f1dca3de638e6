/* Translates the lines of stdin as they come, or, with --n-best N, the words of the command line:
 *
 *     translate_c MODEL < input > output
 *     translate_c MODEL --n-best N LINE...
 */
#include <attend/c_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 1 << 16 };

/* Says why the last call failed. */
static int complain(void) {
  fprintf(stderr, "error: %s\n", attend_last_error());
  return 1;
}

/* Gives the next line of stdin, without its end. */
static int read_line(void* user, const char** line, size_t* length) {
  char* buffer = user;
  if (fgets(buffer, LONGEST_LINE, stdin) == NULL) return 0;
  *line = buffer;
  *length = strcspn(buffer, "\n");
  return 1;
}

/* Prints a translation; a disk that is full ends the stream. */
static int print_translation(void* user, const attend_translation* translation) {
  (void)user;
  printf("%s\n", attend_translation_text(translation, 0, NULL));
  return fflush(stdout);
}

static int translate_stdin(const attend_translator* translator) {
  static char buffer[LONGEST_LINE];
  attend_counts counts = ATTEND_COUNTS_INIT;
  attend_status status =
      attend_translate_stream(translator, read_line, print_translation, buffer, &counts);
  if (status != ATTEND_OK) return complain();
  fprintf(stderr, "%ld lines, %ld tokens\n", (long)counts.lines, (long)counts.target_tokens);
  return 0;
}

/* Prints all alternatives of all lines: line, score, tokens, text. */
static int translate_lines(const attend_translator* translator, const char* const* lines,
                           size_t count) {
  attend_translations* translations = NULL;
  if (attend_translate(translator, lines, NULL, count, &translations, NULL) != ATTEND_OK) {
    return complain();
  }
  for (size_t i = 0; i < attend_translations_count(translations); ++i) {
    const attend_translation* translation = attend_translations_at(translations, i);
    for (size_t rank = 0; rank < attend_translation_count(translation); ++rank) {
      printf("%lu\t%.4f\t%ld\t%s\n", (unsigned long)i, attend_translation_score(translation, rank),
             (long)attend_translation_tokens(translation, rank),
             attend_translation_text(translation, rank, NULL));
    }
  }
  attend_translations_free(translations);
  return 0;
}

int main(int argc, char** argv) {
  int as_lines = argc > 4 && strcmp(argv[2], "--n-best") == 0;
  if (argc != 2 && !as_lines) {
    fprintf(stderr, "usage: translate_c MODEL [--n-best N LINE...]   (attend %s)\n",
            attend_version());
    return 2;
  }

  attend_options* options = NULL;
  attend_translator* translator = NULL;
  int failed = attend_options_new(&options) != ATTEND_OK ||
               (as_lines && attend_options_set(options, "n_best", argv[3]) != ATTEND_OK) ||
               attend_translator_open(argv[1], options, &translator) != ATTEND_OK;
  attend_options_free(options);
  if (failed) return complain();

  int result = as_lines ? translate_lines(translator, (const char* const*)(argv + 4), argc - 4)
                        : translate_stdin(translator);
  attend_translator_close(translator);
  return result;
}
