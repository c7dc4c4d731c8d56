/* options.h - what the example programs' command lines share: whatever is wrong is one line to stderr, naming what and
 * where, and an exit status above 0. */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

/** The name each line begins with; set first in main(). */
extern const char *program_name;

/** Writes one line to stderr and exits with status 1: something outside failed. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Writes one line to stderr and exits with status 2: the command line is wrong. */
_Noreturn void die_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Writes "NAME VERSION" to stdout and exits with status 0. */
_Noreturn void print_version(void);

/** Writes a text to stdout and exits with status 0. */
_Noreturn void print_help(const char *text);

/** Returns the whole number in `text`, from `least` to `most`; else ends the program, naming `option`. */
unsigned option_count(const char *option, const char *text, unsigned least, unsigned most);

/** Returns the seconds in `text`, fractions too, from `least` to `most`; else ends the program, naming `option`. */
double option_seconds(const char *option, const char *text, double least, double most);

#endif
