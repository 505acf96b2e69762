/* The table of keys, the text of pairs, and the option rows: RFC 7143 6.1, 13. */
#include "target/iscsi/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "tests/unit/quintain_test.h"

static void keys_have_names_of_their_own(void)
{
	for (unsigned int i = 0; i < iscsi_login_nkeys; i++)
		CU_ASSERT_PTR_EQUAL(iscsi_key_find(iscsi_login_keys[i].name), &iscsi_login_keys[i]);
}

static void keys_are_found_by_their_exact_name(void)
{
	CU_ASSERT_PTR_NOT_NULL(iscsi_key_find("InitialR2T"));
	CU_ASSERT_PTR_NULL(iscsi_key_find("initialr2t"));
	CU_ASSERT_PTR_NULL(iscsi_key_find("InitialR2"));
	CU_ASSERT_PTR_NULL(iscsi_key_find(""));
}

/* RFC 7143 13: what holds when nothing is negotiated */
static void params_begin_with_the_defaults_of_the_rfc(void)
{
	struct iscsi_params p;

	iscsi_params_init(&p);
	CU_ASSERT_FALSE(p.header_digest || p.data_digest || p.discovery);
	CU_ASSERT_TRUE(p.initial_r2t && p.immediate_data);
	CU_ASSERT_TRUE(p.data_pdu_in_order && p.data_sequence_in_order);
	CU_ASSERT_EQUAL(p.max_connections, 1);
	CU_ASSERT_EQUAL(p.max_recv_data_segment_length, 8192);
	CU_ASSERT_EQUAL(p.max_xmit_data_segment_length, 8192);
	CU_ASSERT_EQUAL(p.max_burst_length, 262144);
	CU_ASSERT_EQUAL(p.first_burst_length, 65536);
	CU_ASSERT_EQUAL(p.default_time2wait, 2);
	CU_ASSERT_EQUAL(p.default_time2retain, 20);
	CU_ASSERT_EQUAL(p.max_outstanding_r2t, 1);
	CU_ASSERT_EQUAL(p.error_recovery_level, 0);
	CU_ASSERT_EQUAL(p.protocol_level, 1);
	CU_ASSERT_STRING_EQUAL(p.initiator_name, "");
	CU_ASSERT_STRING_EQUAL(p.target_name, "");
}

static void numbers_are_decimal_or_hexadecimal(void)
{
	uint32_t n;

	CU_ASSERT_EQUAL(iscsi_number_parse("4294967295", &n), 0);
	CU_ASSERT_EQUAL(n, 4294967295u);
	CU_ASSERT_EQUAL(iscsi_number_parse("0xFfFfFfFf", &n), 0);
	CU_ASSERT_EQUAL(n, 4294967295u);
	CU_ASSERT_EQUAL(iscsi_number_parse("0", &n), 0);
	CU_ASSERT_EQUAL(n, 0);
}

static void numbers_are_nothing_else(void)
{
	static const char *const words[] = {
		"",   "-1",	    "+1",	   "1 ",  " 1",	 "1K",	"0x",
		"x1", "4294967296", "0x100000000", "1.0", "1~2", "0b1", "99999999999999999999999"
	};
	uint32_t n;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		CU_ASSERT_EQUAL(iscsi_number_parse(words[i], &n), -EINVAL);
}

static void lists_have_whole_words(void)
{
	CU_ASSERT_TRUE(iscsi_list_has("None", "None"));
	CU_ASSERT_TRUE(iscsi_list_has("CHAP,None", "None"));
	CU_ASSERT_TRUE(iscsi_list_has("a,,None", "None"));
	CU_ASSERT_FALSE(iscsi_list_has("CHAP,NoneX", "None"));
	CU_ASSERT_FALSE(iscsi_list_has("xNone", "None"));
	CU_ASSERT_FALSE(iscsi_list_has("none", "None"));
	CU_ASSERT_FALSE(iscsi_list_has("", "None"));
}

/* ---- text ---- */

static int next(const char *text, size_t len, char **key, char **value)
{
	static char copy[16384];
	uint32_t pos = 0;

	memcpy(copy, text, len);
	return iscsi_text_next(copy, (uint32_t)len, &pos, key, value);
}

static void text_has_keys_and_values(void)
{
	char text[] = "a=b\0Key=x=y\0\0\0c=";
	uint32_t pos = 0;
	char *key, *value;

	CU_ASSERT_EQUAL_FATAL(iscsi_text_next(text, sizeof(text), &pos, &key, &value), 1);
	CU_ASSERT_STRING_EQUAL(key, "a");
	CU_ASSERT_STRING_EQUAL(value, "b");
	CU_ASSERT_EQUAL_FATAL(iscsi_text_next(text, sizeof(text), &pos, &key, &value), 1);
	CU_ASSERT_STRING_EQUAL(key, "Key");
	CU_ASSERT_STRING_EQUAL(value, "x=y");
	CU_ASSERT_EQUAL_FATAL(iscsi_text_next(text, sizeof(text), &pos, &key, &value), 1);
	CU_ASSERT_STRING_EQUAL(key, "c");
	CU_ASSERT_STRING_EQUAL(value, "");
	CU_ASSERT_EQUAL(iscsi_text_next(text, sizeof(text), &pos, &key, &value), 0);
}

static void text_without_its_end_or_equals_sign_is_refused(void)
{
	char *key, *value;

	CU_ASSERT_EQUAL(next("a=b", 3, &key, &value), -EINVAL);
	CU_ASSERT_EQUAL(next("ab", 3, &key, &value), -EINVAL);
	CU_ASSERT_EQUAL(next("=b", 3, &key, &value), -EINVAL);
	CU_ASSERT_EQUAL(next("", 0, &key, &value), 0);
}

static void text_has_keys_of_63_and_values_of_8192_bytes(void)
{
	static char text[9000];
	char *key, *value;

	memset(text, 'k', 63);
	memcpy(text + 63, "=v", 3);
	CU_ASSERT_EQUAL(next(text, 66, &key, &value), 1);
	memset(text, 'k', 64);
	memcpy(text + 64, "=v", 3);
	CU_ASSERT_EQUAL(next(text, 67, &key, &value), -EINVAL);
	memset(text, 'v', sizeof(text));
	memcpy(text, "k=", 2);
	text[2 + 8192] = '\0';
	CU_ASSERT_EQUAL(next(text, 8195, &key, &value), 1);
	text[2 + 8192] = 'v';
	text[2 + 8193] = '\0';
	CU_ASSERT_EQUAL(next(text, 8196, &key, &value), -EINVAL);
}

static void text_out_never_overflows(void)
{
	char buf[8] = "#######";
	struct iscsi_text_out out = { .buf = buf, .cap = 7 };

	iscsi_text_add(&out, "a", "b");
	CU_ASSERT_EQUAL(out.len, 4);
	iscsi_text_add(&out, "c", "dd");
	CU_ASSERT_TRUE(out.overflow);
	CU_ASSERT_EQUAL(out.len, 4);
	CU_ASSERT_EQUAL(memcmp(buf, "a=b\0###", 8), 0);
	out.overflow = false;
	iscsi_text_add_uint(&out, "c", 7);
	CU_ASSERT_TRUE(out.overflow);
	CU_ASSERT_EQUAL(out.len, 4);
}

static void text_out_fills_its_room(void)
{
	char buf[4];
	struct iscsi_text_out out = { .buf = buf, .cap = 4 };

	iscsi_text_add_uint(&out, "a", 7);
	CU_ASSERT_FALSE(out.overflow);
	CU_ASSERT_EQUAL(memcmp(buf, "a=7", 4), 0);
}

/* ---- settings ---- */

static void settings_have_the_defaults_that_they_promise(void)
{
	struct iscsi_limits l;
	struct iscsi_server_settings s;

	option_defaults(iscsi_limits_options, &l);
	option_defaults(iscsi_server_options, &s);
	CU_ASSERT_EQUAL(l.max_recv_data_segment_length, 256 << 10);
	CU_ASSERT_EQUAL(l.max_burst_length, 1 << 20);
	CU_ASSERT_EQUAL(l.first_burst_length, 64 << 10);
	CU_ASSERT_EQUAL(l.max_outstanding_r2t, 16);
	CU_ASSERT_TRUE(l.initial_r2t && l.immediate_data);
	CU_ASSERT_EQUAL(l.header_digest, ISCSI_DIGEST_OPTIONAL);
	CU_ASSERT_EQUAL(l.data_digest, ISCSI_DIGEST_OPTIONAL);
	CU_ASSERT_EQUAL(l.queue_depth, 256);
	CU_ASSERT_EQUAL(l.nop_interval, 30);
	CU_ASSERT_EQUAL(l.nop_timeout, 30);
	CU_ASSERT_EQUAL(s.login_timeout, 30);
	CU_ASSERT_EQUAL(s.max_connections, 16384);
	CU_ASSERT_EQUAL(s.max_logins, 1024);
	CU_ASSERT_EQUAL(s.command_slots, 65536);
}

static int set(const struct option_spec *table, const char *key, const char *value)
{
	union {
		struct iscsi_limits limits;
		struct iscsi_server_settings server;
	} object;
	const struct option_spec *row = option_find(table, key);

	CU_ASSERT_PTR_NOT_NULL_FATAL(row);
	return option_set(row, &object, value, NULL);
}

static void settings_have_the_ranges_of_the_rfc(void)
{
	static const struct {
		const char *key, *lowest, *below, *highest, *above;
	} rows[] = {
		{ "max-recv-data-segment-length", "512", "511", "16777215", "16777216" },
		{ "max-burst-length", "512", "511", "16777215", "16M" },
		{ "first-burst-length", "512", "511", "16777215", "16777216" },
		{ "max-outstanding-r2t", "1", "0", "65535", "65536" },
		{ "default-time2wait", "0", "-1", "3600", "3601" },
		{ "default-time2retain", "0", "-1", "3600", "3601" },
		{ "queue-depth", "1", "0", "1024", "1025" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CU_ASSERT_EQUAL(set(iscsi_limits_options, rows[i].key, rows[i].lowest), 0);
		CU_ASSERT_EQUAL(set(iscsi_limits_options, rows[i].key, rows[i].highest), 0);
		CU_ASSERT_NOT_EQUAL(set(iscsi_limits_options, rows[i].key, rows[i].below), 0);
		CU_ASSERT_NOT_EQUAL(set(iscsi_limits_options, rows[i].key, rows[i].above), 0);
	}
	CU_ASSERT_EQUAL(set(iscsi_limits_options, "header-digest", "required"), 0);
	CU_ASSERT_NOT_EQUAL(set(iscsi_limits_options, "header-digest", "crc32c"), 0);
	CU_ASSERT_EQUAL(set(iscsi_server_options, "timeout", "0"), 0);
	CU_ASSERT_NOT_EQUAL(set(iscsi_server_options, "command-slots", "63"), 0);
}

/* The manual page is made of them. */
static void settings_are_described(void)
{
	const struct option_spec *tables[] = { iscsi_limits_options, iscsi_server_options };

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct option_spec *row = tables[i]; row->key; row++) {
			CU_ASSERT_PTR_NOT_NULL_FATAL(row->summary);
			CU_ASSERT_PTR_NOT_NULL_FATAL(row->doc);
			CU_ASSERT_NOT_EQUAL(row->summary[strlen(row->summary) - 1], '.');
			CU_ASSERT_EQUAL(row->doc[strlen(row->doc) - 1], '.');
		}
}

static const struct test tests[] = {
	TEST(keys_have_names_of_their_own),
	TEST(keys_are_found_by_their_exact_name),
	TEST(params_begin_with_the_defaults_of_the_rfc),
	TEST(numbers_are_decimal_or_hexadecimal),
	TEST(numbers_are_nothing_else),
	TEST(lists_have_whole_words),
	TEST(text_has_keys_and_values),
	TEST(text_without_its_end_or_equals_sign_is_refused),
	TEST(text_has_keys_of_63_and_values_of_8192_bytes),
	TEST(text_out_never_overflows),
	TEST(text_out_fills_its_room),
	TEST(settings_have_the_defaults_that_they_promise),
	TEST(settings_have_the_ranges_of_the_rfc),
	TEST(settings_are_described),
};

TEST_MAIN(tests)
