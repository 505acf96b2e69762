/*
 * docs/commands.md, the list of what initiators can ask for.  Runs in the top
 * folder; UPDATE_DOCS=1 (`make docs`) writes the page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/scsi/opcodes.h"
#include "target/scsi/sense.h"
#include "tests/unit/quintain_test.h"

#define PAGE "docs/commands.md"

static void put_commands(FILE *out)
{
	static const char *const dirs[] = { "none", "in", "out" };

	fprintf(out, "# SCSI commands\n\n"
		     "Made by `make docs` from the tables in `target/scsi`; do not edit.\n\n"
		     "Any other operation code ends with INVALID COMMAND OPERATION CODE. Bits of a "
		     "CDB outside of its\nmask are refused. *thin*: only where the store frees "
		     "space. *reserved*: refused while another\ninitiator holds the LUN by "
		     "RESERVE.\n\n"
		     "| opcode | command | data | CDB usage mask | notes |\n"
		     "|---|---|---|---|---|\n");
	for (unsigned int i = 0; i < scsi_nopcodes; i++) {
		const struct scsi_opcode *op = &scsi_opcodes[i];

		fprintf(out, "| %02X", op->opcode);
		if (op->action != SCSI_NO_ACTION)
			fprintf(out, "/%02X", op->action);
		fprintf(out, " | %s | %s | `", op->name, dirs[op->dir]);
		for (unsigned int b = 0; b < op->cdb_len; b++)
			fprintf(out, "%s%02X", b ? " " : "", op->usage[b]);
		fprintf(out, "` |%s%s%s |\n", op->flags & OP_WRITES ? " writes" : "",
			op->flags & OP_UNMAP ? " thin" : "",
			op->reservation != RESERVATION_ALLOWED ? " reserved" : "");
	}
}

static void put_pages(FILE *out)
{
	uint8_t code, subcode;
	const char *name;

	fprintf(out, "\n## Vital product data pages\n\n| page | name |\n|---|---|\n");
	for (unsigned int i = 0; (name = scsi_vpd_page_name(i, &code)); i++)
		fprintf(out, "| %02X | %s |\n", code, name);
	fprintf(out, "\n## Mode pages\n\n| page | name |\n|---|---|\n");
	for (unsigned int i = 0; (name = scsi_mode_page_name(i, &code, &subcode)); i++)
		fprintf(out, "| %02X/%02X | %s |\n", code, subcode, name);
	fprintf(out, "\n## Log pages\n\n| page | name |\n|---|---|\n");
	for (unsigned int i = 0; (name = scsi_log_page_name(i, &code, &subcode)); i++)
		fprintf(out, "| %02X/%02X | %s |\n", code, subcode, name);
}

static void put_sense(FILE *out)
{
	fprintf(out, "\n## Sense data\n\n| key | ASC/ASCQ | text |\n|---|---|---|\n");
	for (int i = 0; i < SENSE_COUNT; i++) {
		const struct sense_row *row = sense_row((enum sense)i);

		fprintf(out, "| %X | %02X/%02X | %s |\n", row->key, row->asc, row->ascq, row->text);
	}
}

static char *page_make(void)
{
	char *page = NULL;
	size_t len;
	FILE *out = open_memstream(&page, &len);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	put_commands(out);
	put_pages(out);
	put_sense(out);
	CU_ASSERT_EQUAL_FATAL(fclose(out), 0);
	return page;
}

static void write_page(const char *page)
{
	FILE *file = fopen(PAGE, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(page, file);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

static void commands_page_is_made_of_the_rows(void)
{
	static char committed[65536];
	char *page = page_make();
	FILE *file;
	size_t len;

	if (getenv("UPDATE_DOCS"))
		write_page(page);
	file = fopen(PAGE, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	len = fread(committed, 1, sizeof(committed) - 1, file);
	committed[len] = '\0';
	fclose(file);
	if (strcmp(page, committed) != 0)
		puts(PAGE " is not up to date: run make docs");
	CU_ASSERT_STRING_EQUAL(page, committed);
	free(page);
}

static const struct test tests[] = {
	TEST(commands_page_is_made_of_the_rows),
};
TEST_MAIN(tests)
