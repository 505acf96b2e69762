#include "target/pool_print.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/list.h"
#include "base/option.h"
#include "target/pool_ops.h"
#include "target/table.h"

void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(value);
}

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = pool_request_text(object, name);

	return text ? text : "";
}

static void size_cell(struct table *table, uint64_t bytes)
{
	char text[64];

	size_format(bytes, text, sizeof(text));
	table_cell(table, "%s", text);
}

/* Logical bytes for each that is stored. */
static void ratio_cell(struct table *table, const json_t *object)
{
	uint64_t mapped = number_of(object, "mapped_bytes");
	uint64_t stored = number_of(object, "stored_bytes");

	if (mapped == 0 || stored == 0)
		table_cell(table, "-");
	else
		table_cell(table, "%.2f", (double)mapped / (double)stored);
}

static void pool_cells(struct table *table, const json_t *pool)
{
	uint64_t size = number_of(pool, "size_bytes"), used = number_of(pool, "used_bytes");

	table_cell(table, "%s", text_of(pool, "name"));
	size_cell(table, size);
	size_cell(table, used);
	table_cell(table, "%" PRIu64 "%%", size ? used * 100 / size : 0);
	size_cell(table, number_of(pool, "available_bytes"));
	size_cell(table, number_of(pool, "host_bytes"));
	table_cell(table, "%" PRIu64, number_of(pool, "volumes"));
	ratio_cell(table, pool);
	table_cell(table, "%s",
		   json_is_true(json_object_get(pool, "daemon")) ? "served" : "closed");
	table_cell(table, "%s", text_of(pool, "path"));
}

void print_pools(const json_t *list)
{
	static const char *const titles[] = { "POOL",	 "SIZE",    "USED",  "FULL",  "FREE",
					      "ON HOST", "VOLUMES", "RATIO", "STATE", "PATH" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 0xfe);
	const json_t *pool;
	size_t i;

	json_array_foreach(list, i, pool) if (!pool_request_text(pool, "problem"))
		pool_cells(table, pool);
	table_print(table, stdout);
	json_array_foreach(list, i, pool)
	{
		if (pool_request_text(pool, "problem"))
			printf("  %s: %s\n", text_of(pool, "name"), text_of(pool, "problem"));
		if (pool_request_text(pool, "read_only"))
			printf("  %s is read-only: %s\n", text_of(pool, "name"),
			       text_of(pool, "read_only"));
	}
}

void print_volumes(const json_t *list)
{
	static const char *const titles[] = { "VOLUME", "SIZE",	  "WRITTEN",	"STORED",
					      "RATIO",	"RECORD", "COMPRESSION" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 0x3e);
	const json_t *volume;
	size_t i;

	json_array_foreach(list, i, volume)
	{
		table_cell(table, "%s", text_of(volume, "name"));
		size_cell(table, number_of(volume, "size_bytes"));
		size_cell(table, number_of(volume, "mapped_bytes"));
		size_cell(table, number_of(volume, "stored_bytes"));
		ratio_cell(table, volume);
		size_cell(table, number_of(volume, "record_size"));
		table_cell(table, "%s", text_of(volume, "compression"));
	}
	table_print(table, stdout);
}

static void line_size(const char *what, const json_t *volume, const char *member)
{
	char text[64];

	size_format(number_of(volume, member), text, sizeof(text));
	printf("%-12s %s (%" PRIu64 " bytes)\n", what, text, number_of(volume, member));
}

void print_volume(const json_t *volume)
{
	time_t created = (time_t)number_of(volume, "created_s");
	char when[64] = "";
	struct tm tm;

	if (created != 0 && localtime_r(&created, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%-12s %s\n", "name", text_of(volume, "name"));
	printf("%-12s %s\n", "uuid", text_of(volume, "uuid"));
	printf("%-12s %s\n", "created", when[0] ? when : "-");
	line_size("size", volume, "size_bytes");
	line_size("written", volume, "mapped_bytes");
	line_size("stored", volume, "stored_bytes");
	printf("%-12s %" PRIu64 "\n", "blocksize", number_of(volume, "block_size"));
	printf("%-12s %" PRIu64 "\n", "record-size", number_of(volume, "record_size"));
	printf("%-12s %s\n", "compression", text_of(volume, "compression"));
	printf("%-12s %s\n", "checksum", text_of(volume, "checksum"));
}
