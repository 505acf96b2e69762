/*
 * The SCSI suite: every test against every store.  A test's name is
 * STORE.subject_behaviour, so that `suite 'memory_512.*'` runs one store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scsi/disk.h"

static const struct scsi_test *const groups[] = {
	tests_inquiry, tests_rw,     tests_verify, tests_provisioning, tests_mode,
	tests_unit,    tests_report, tests_nexus,  tests_lun,	       tests_fault,
};

static bool runs_on(const struct scsi_test *group, const struct disk_store *store)
{
	return group != tests_fault || store->fault;
}

int main(int argc, char **argv)
{
	static struct test table[2048];
	static char names[2048][96];
	size_t n = 0;
	int rc;

	for (size_t store = 0; store < disk_nstores; store++)
		for (size_t group = 0; group < ARRAY_LEN(groups); group++) {
			if (!runs_on(groups[group], &disk_stores[store]))
				continue;
			for (const struct scsi_test *t = groups[group]; t->name; t++, n++) {
				if (n == ARRAY_LEN(table))
					abort();
				snprintf(names[n], sizeof(names[n]), "%s.%s",
					 disk_stores[store].name, t->name);
				table[n].name = names[n];
				table[n].run = t->run;
			}
		}
	rc = test_main(argc, argv, table, n);
	disk_reactors_stop();
	return rc;
}
