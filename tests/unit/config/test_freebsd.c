/* Files as FreeBSD's ctl.conf(5) describes them load unchanged. */
#include <string.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void file_with_groups_and_zvols_loads(void)
{
	struct config *config = config_of(
		"pidfile /var/run/ctld.pid\n"
		"auth-group hosts {\n"
		"\tchap-mutual \"anna\" \"annas-secret\" \"san\" \"sans-secret1\"\n"
		"\tchap-mutual \"bert\" \"berts-secret\" \"san\" \"sans-secret1\"\n"
		"\tinitiator-portal 10.1.0.1/16\n"
		"}\n"
		"auth-group named {\n"
		"\tauth-type none\n"
		"\tinitiator-name \"iqn.2014-03.org.example:one\"\n"
		"\tinitiator-portal 10.2.0.1/24\n"
		"\tinitiator-portal [2001:db8::1:2]\n"
		"}\n"
		"portal-group front {\n"
		"\tdiscovery-auth-group no-authentication\n"
		"\tlisten 0.0.0.0:3260\n"
		"\tlisten [::]:3260\n"
		"\tlisten [fe80::1:2]:3261\n"
		"}\n"
		"target iqn.2014-03.org.example:zero {\n"
		"\talias \"The first one\"\n"
		"\tauth-group no-authentication\n"
		"\tlun 0 {\n"
		"\t\tpath /dev/zvol/pool/zero\n"
		"\t\tblocksize 4096\n"
		"\t\tsize 4G\n"
		"\t}\n"
		"}\n"
		"lun shared {\n"
		"\tpath /dev/zvol/pool/shared\n"
		"\toption naa 0x6589cfc000000123\n"
		"}\n"
		"target iqn.2014-03.org.example:first {\n"
		"\tauth-group hosts\n"
		"\tportal-group front\n"
		"\tlun 0 shared\n"
		"\tlun 1 {\n"
		"\t\tpath /dev/zvol/pool/second\n"
		"\t\toption foo bar\n"
		"\t}\n"
		"}\n"
		"target naa.5001517812345678 {\n"
		"\tport isp0\n"
		"\tport isp1/2\n"
		"\tlun 0 shared\n"
		"}\n");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(config->targets->alias, "The first one");
	CU_ASSERT_STRING_EQUAL(config->targets->next->next->name, "naa.5001517812345678");
	config_free(config);
}

static void file_with_inline_chap_loads(void)
{
	CHECK_ERRORS("portal-group back {\n"
		     "\tdiscovery-auth-group no-authentication\n"
		     "\tdiscovery-filter portal-name\n"
		     "\tlisten 127.0.0.1\n"
		     "\tlisten 0.0.0.0:3261\n"
		     "\tlisten [::]:3261\n"
		     "\tlisten [fe80::1:2]\n"
		     "\toption ha_shared on\n"
		     "\ttag 12 dscp AF11 pcp 3\n"
		     "\tforeign\n"
		     "\toffload cxgbei\n"
		     "\tredirect 10.0.0.1\n"
		     "}\n"
		     "target iqn.2014-03.org.example:three {\n"
		     "\tchap user secret\n"
		     "\tredirect 10.0.0.1:3260\n"
		     "\tlun 0 {\n"
		     "\t\tpath /dev/zvol/three; serial \"0001\"; device-id \"a disk\"\n"
		     "\t\tdevice-type 0 ctl-lun 7 backend block\n"
		     "\t}\n"
		     "}\n",
		     "");
}

static void words_without_effect_warn(void)
{
	CHECK_WARNINGS("debug 0\nmaxproc 30\ntimeout 60\nisns-server 10.0.0.1:3205\n"
		       "isns-period 900\nisns-timeout 5\n",
		       "2:1: maxproc has no effect in quintain\n"
		       "4:1: isns-server has no effect in quintain\n"
		       "5:1: isns-period has no effect in quintain\n"
		       "6:1: isns-timeout has no effect in quintain\n");
}

static void nvme_blocks_are_skipped(void)
{
	struct config *config = config_of("auth-group hosts {\n"
					  "\thost-address 10.0.0.0/8\n"
					  "\thost-nqn nqn.2014-08.org.nvmexpress:uuid:1\n"
					  "\tauth-type none\n"
					  "}\n"
					  "transport-group fabric {\n"
					  "\tdiscovery-auth-group no-authentication\n"
					  "\tlisten discovery-tcp 0.0.0.0:8009\n"
					  "\tlisten tcp 0.0.0.0:4420\n"
					  "}\n"
					  "controller nqn.2014-03.org.example:c {\n"
					  "\tauth-group no-authentication\n"
					  "\ttransport-group fabric\n"
					  "\tnamespace 1 {\n"
					  "\t\tpath \"/dev/zvol/}\"\n"
					  "\t}\n"
					  "\tnamespace 2 shared\n"
					  "}\n"
					  "spin-us 5");

	CHECK_ERRORS_OF(config, "");
	CHECK_WARNINGS_OF(config, "2:2: host-address has no effect in quintain\n"
				  "3:2: host-nqn has no effect in quintain\n"
				  "6:1: transport-group has no effect in quintain\n"
				  "11:1: controller has no effect in quintain\n");
	CU_ASSERT_EQUAL(config->global.spin_us, 5);
	config_free(config);
}

static const struct test tests[] = {
	TEST(file_with_groups_and_zvols_loads),
	TEST(file_with_inline_chap_loads),
	TEST(words_without_effect_warn),
	TEST(nvme_blocks_are_skipped),
};
TEST_MAIN(tests)
