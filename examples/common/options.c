/* options.c - numbers read whole or refused by the option's name, and the ways a program ends early. */
#include "examples/common/options.h"

#include <errno.h>
#include <linkpool/linkpool.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *program_name = "program";

_Noreturn static void say_and_exit(int status, const char *format, va_list arguments)
{
    char line[512];

    vsnprintf(line, sizeof line, format, arguments);
    fprintf(stderr, "%s: %s\n", program_name, line);
    exit(status);
}

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say_and_exit(1, format, arguments);
}

void die_usage(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say_and_exit(2, format, arguments);
}

void print_version(void)
{
    printf("%s %s\n", program_name, LINKPOOL_VERSION);
    exit(0);
}

void print_help(const char *text)
{
    fputs(text, stdout);
    exit(0);
}

unsigned option_count(const char *option, const char *text, unsigned least, unsigned most)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    /* strtoul() takes signs and blanks before the digits; an option does not */
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < least || number > most)
        die_usage("%s: '%s' is not a whole number from %u to %u", option, text, least, most);
    return (unsigned)number;
}

double option_seconds(const char *option, const char *text, double least, double most)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(seconds) || seconds < least || seconds > most)
        die_usage("%s: '%s' is not a number of seconds from %g to %g", option, text, least, most);
    return seconds;
}
