/* Sizes in bytes as people write them: see option.h. */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char suffixes[] = "KMGTP";

int size_parse(const char *word, uint64_t *bytes)
{
	uint64_t value = 0;
	const char *p = word;
	const char *suffix;
	unsigned int shift = 0;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		unsigned int digit = (unsigned int)(*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	suffix = *p ? strchr(suffixes, toupper((unsigned char)*p)) : NULL;
	if (suffix) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		p++;
	}
	/* expand_number(3), which reads ctl.conf, takes "512b" and "1KB";
	 * people also write "1KiB". */
	if (strcasecmp(p, "b") != 0 && !(suffix && strcasecmp(p, "ib") == 0) && *p)
		return -EINVAL;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

void size_format(uint64_t bytes, char *out, size_t cap)
{
	unsigned int unit = 0;
	double value;
	int decimals;
	size_t len;
	char number[32];

	while (unit < sizeof(suffixes) - 1 && bytes >> (10 * (unit + 1)) != 0)
		unit++;
	if (unit == 0) {
		snprintf(out, cap, "%" PRIu64 " bytes", bytes);
		return;
	}
	value = (double)bytes / (double)(UINT64_C(1) << (10 * unit));
	decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
	snprintf(number, sizeof(number), "%.*f", decimals, value);
	len = strlen(number);
	if (decimals > 0) {
		while (number[len - 1] == '0')
			len--;
		if (number[len - 1] == '.')
			len--;
	}
	snprintf(out, cap, "%.*s %ciB", (int)len, number, suffixes[unit - 1]);
}
