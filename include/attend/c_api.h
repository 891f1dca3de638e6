/// attend for C99 and whatever calls C: translates lines of text with a trained model. Link with
/// libattend_c (`find_package(attend COMPONENTS c)`, `pkg-config attend_c`); docs/library.md shows
/// it at work.
///
/// ABI. What is here stays as it is while the library's name ends in .so.0: functions are added,
/// none is removed or given another meaning; handles are opaque; options are named by text, so that
/// new ones need no new function; the one struct carries its size.
///
/// Strings are UTF-8. Those that go in have a length and may hold NUL bytes; where the length is
/// optional, they end at their NUL without it. Those that come out have a length and a NUL behind
/// it. What is no UTF-8 becomes U+FFFD, with a warning.
///
/// Ownership. Who makes a handle frees it, with the function of that kind; freeing NULL does
/// nothing. Strings and handles that a function returns belong to the handle that they came from
/// and live as long. What is passed in is copied where it is needed for longer than the call.
///
/// Threads. A translator may be used by any number of threads at once, and closed when no call uses
/// it any more. Translations may be read by many threads. Options are for one thread at a time.
///
/// Errors. Functions that can fail return an attend_status, and set what they give only where it is
/// ATTEND_OK. No C++ exception leaves them. The message, for people, is attend_last_error().
#ifndef ATTEND_C_API_H
#define ATTEND_C_API_H

/* NOLINTBEGIN(modernize-use-using,modernize-deprecated-headers,readability-identifier-naming) C */
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ATTEND_API __attribute__((visibility("default")))
#else
#define ATTEND_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// What became of a call.
typedef int32_t attend_status;
enum {
  ATTEND_OK = 0,
  ATTEND_FAILED = 1,        ///< the job cannot go on: a file, memory, the machine
  ATTEND_WRONG_CALL = 2,    ///< an option or an argument that cannot be meant
  ATTEND_CANCELLED = 3,     ///< a callback asked to stop
  ATTEND_OUT_OF_MEMORY = 4  ///< memory for the job could not be had
};

/// How to search, and with what speed and memory. Freed by attend_options_free.
typedef struct attend_options attend_options;
/// A loaded model and its worker threads. Freed by attend_translator_close.
typedef struct attend_translator attend_translator;
/// What was made of one line: its best translations, best first, at least one. A blank line has
/// one, which is empty. Belongs to what it came from.
typedef struct attend_translation attend_translation;
/// What was made of many lines, in their order. Freed by attend_translations_free.
typedef struct attend_translations attend_translations;

/// What happened to the lines of one call. Start with `attend_counts counts = ATTEND_COUNTS_INIT;`:
/// struct_size says which fields this program knows, and no others are written.
typedef struct attend_counts {
  size_t struct_size;
  int64_t lines;
  int64_t blank;          ///< empty, or white space alone
  int64_t repaired;       ///< had bytes that are no UTF-8
  int64_t split;          ///< were longer than the model's max_length; translated in pieces
  int64_t source_tokens;  ///< end of sentence counted, like the target's
  int64_t target_tokens;  ///< of the best translations
} attend_counts;
#define ATTEND_COUNTS_INIT \
  { sizeof(attend_counts), 0, 0, 0, 0, 0, 0 }

/// The library's version, "0.1.0".
ATTEND_API const char* attend_version(void);

/// Why the last call on this thread that returned other than ATTEND_OK did so: what was found, what
/// was expected, what to do. Empty before the first. Valid until this thread's next such call.
ATTEND_API const char* attend_last_error(void);

/// Warnings (a line split, bytes replaced) go to stderr; from a quiet library, only errors do.
/// For the whole process.
ATTEND_API void attend_set_quiet(int quiet);

/// Options as `attend translate` has them by default.
ATTEND_API attend_status attend_options_new(attend_options** options);
ATTEND_API void attend_options_free(attend_options* options);

/// Sets an option of `attend translate` that says how to search or with what speed and memory:
/// names ("beam_size"; dashes do as well), values ("8", "true", "int8") and meanings are the
/// command's, see docs/options.md. ATTEND_WRONG_CALL for an unknown name or a value that is none;
/// values that do not fit each other are found when the translator is opened.
ATTEND_API attend_status attend_options_set(attend_options* options, const char* name,
                                            const char* value);
/// The same, keeping the values that an option which takes several ("suppress") has already.
ATTEND_API attend_status attend_options_add(attend_options* options, const char* name,
                                            const char* value);

/// Loads a model folder or the folder of a run. Options may be NULL for the defaults, and may be
/// changed and freed afterwards.
ATTEND_API attend_status attend_translator_open(const char* directory,
                                                const attend_options* options,
                                                attend_translator** translator);
/// Ends the worker threads and frees the model. No call may be using it.
ATTEND_API void attend_translator_close(attend_translator* translator);
/// How many worker threads there are.
ATTEND_API int64_t attend_translator_workers(const attend_translator* translator);
/// What matrix products multiply by, after "auto": "float32", "bfloat16", "int8".
ATTEND_API const char* attend_translator_precision(const attend_translator* translator);

/// Translates `count` lines into as many translations, in order. `lengths` are the lines' bytes;
/// where it is NULL, each line ends at its NUL. Calls of many threads share the workers; what a
/// line becomes does not depend on its company. `counts` may be NULL.
ATTEND_API attend_status attend_translate(const attend_translator* translator,
                                          const char* const* lines, const size_t* lengths,
                                          size_t count, attend_translations** translations,
                                          attend_counts* counts);
ATTEND_API void attend_translations_free(attend_translations* translations);
/// How many lines were translated.
ATTEND_API size_t attend_translations_count(const attend_translations* translations);
/// What was made of line `index`, from 0; NULL where there is no such line.
ATTEND_API const attend_translation* attend_translations_at(const attend_translations* translations,
                                                            size_t index);

/// How many alternatives there are: 1, or up to the option n_best.
ATTEND_API size_t attend_translation_count(const attend_translation* translation);
/// The text of alternative `rank`, 0 being the best, and its bytes in `length`, which may be NULL;
/// NULL where there is no such alternative. It never holds '\n'.
ATTEND_API const char* attend_translation_text(const attend_translation* translation, size_t rank,
                                               size_t* length);
/// Its log-probability with the length penalty, natural logarithm: what the alternatives are
/// ordered by; NaN where there is no such alternative.
ATTEND_API double attend_translation_score(const attend_translation* translation, size_t rank);
/// Its log-probability, natural logarithm; NaN where there is no such alternative.
ATTEND_API double attend_translation_log_prob(const attend_translation* translation, size_t rank);
/// Its tokens, end of sentence counted; 0 of a blank line and where there is no such alternative.
ATTEND_API int64_t attend_translation_tokens(const attend_translation* translation, size_t rank);

/// Gives the next line of a stream: above 0 with `line` and `length` set, which are to stay valid
/// until the next call; 0 at the end; below 0 to cancel. It may take its time. It is called on a
/// thread of the library's, one call at a time, and not after attend_translate_stream returned.
typedef int (*attend_read_line)(void* user, const char** line, size_t* length);
/// Takes the translation of the next line: 0 to go on, anything else to cancel. It is called on the
/// thread of the caller, in the order of the lines. `translation` is valid until it returns.
typedef int (*attend_take_translation)(void* user, const attend_translation* translation);

/// Translates all lines that `read` gives. It reads so far ahead as keeps the workers busy and no
/// further: memory does not grow with the stream, and a line is answered although no other follows.
/// Callbacks must return (no longjmp, no exceptions); they may call the library, to close the
/// translator excepted. `user` is handed to both; they run on different threads.
///
/// Cancelling gives ATTEND_CANCELLED: where `take` asked for it, as soon as `read`, which may be
/// called once more, has returned; where `read` did, after the lines before it have been taken.
/// `counts` may be NULL and is filled in only where this returns ATTEND_OK.
ATTEND_API attend_status attend_translate_stream(const attend_translator* translator,
                                                 attend_read_line read,
                                                 attend_take_translation take, void* user,
                                                 attend_counts* counts);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using,modernize-deprecated-headers,readability-identifier-naming) */

#endif
