/* Texts of errors: see err.h. */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	assert(code > 0);
	if (!err)
		return -code;
	/* Not in place: an argument may be the old text of the same err. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(err->text, text, strlen(text) + 1);
	return -code;
}

void err_prefix(struct err *err, const char *fmt, ...)
{
	char prefix[ERR_TEXT_MAX - sizeof(": ")];
	va_list ap;
	size_t len, kept;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	len = strlen(prefix);
	kept = strnlen(err->text, sizeof(err->text) - 1 - len - 2);
	memmove(err->text + len + 2, err->text, kept);
	memcpy(err->text, prefix, len);
	memcpy(err->text + len, ": ", 2);
	err->text[len + 2 + kept] = '\0';
}

const char *err_name(int code)
{
	const char *name = strerrordesc_np(code);

	return name ? name : "unknown error";
}
