/*
 * Errors of the control path, in words an operator can act on.
 *
 * A function that may fail for the operator returns 0 or -errno and fills a
 * struct err that its caller owns: what was given, what is valid, what to do.
 * err may be NULL when the caller does not want the text.  The data path does
 * not use this: a request carries its result.
 *
 * Any thread; a struct err belongs to one.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_TEXT_MAX 1024

struct err {
	char text[ERR_TEXT_MAX];
};

/*
 * Sets the text (cut at ERR_TEXT_MAX) and returns -code, so that a failing
 * function can end in "return err_set(err, EINVAL, ...)".  code is positive.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " in front of the text that is already there. */
void err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* strerror() that is safe in threads; the text is static. */
const char *err_name(int code);

#endif
