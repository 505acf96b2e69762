#!/usr/bin/env bash
# The command line, the manual page, and `check`.
# shellcheck source=tests/it/lib.sh
. "$(dirname "$0")/lib.sh"
page=$(realpath "$(dirname "$0")/../../docs/quintain.8")

# run_status STATUS COMMAND...: its output on stdout, whatever it ends with.
status_is() {
    local wanted=$1 status=0
    shift
    "$@" >"$dir/out" 2>&1 || status=$?
    [ $status = "$wanted" ] || { echo "status $status, not $wanted:"; cat "$dir/out"; return 1; }
}

says() { grep -qF -- "$1" "$dir/out" || { echo "does not say: $1"; cat "$dir/out"; return 1; }; }

commands() { quintain --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'; }

# subcommands COMMAND: "create" of "pool create" and so on; none of most.
subcommands() { quintain "$1" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'; }

# options COMMAND: those of its help, and of its subcommands'.
options() {
    local sub
    {
        quintain "$1" --help
        for sub in $(subcommands "$1"); do quintain "$1" "$sub" --help; done
    } | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

test_help_lists_every_command() {
    [ "$(commands | tr '\n' ' ')" = "serve check status reload pool volume version " ]
    local command
    for command in $(commands); do
        quintain "$command" --help | head -1 | has "^usage: quintain $command"
    done
}

test_help_and_manual_page_name_the_same() {
    local command option sub
    for command in $(commands); do
        grep -qx "\.SS $command" "$page"
        for sub in $(subcommands "$command"); do
            quintain "$command" "$sub" --help | head -1 | has "^usage: quintain $command $sub"
            grep -qE "^\.(BR?|RB|BI) .*$command $sub" "$page" || { echo "$command $sub is not in the manual page"; return 1; }
        done
        for option in $(options "$command"); do
            [ "$option" = --help ] || sed -n "/^\.SS $command\$/,/^\.S[SH]/p" "$page" | sed 's/\\-/-/g' |
                has -- "$option" || { echo "$command $option is not in the manual page"; return 1; }
        done
    done
    [ "$(sed -n 's/^\.SS //p' "$page" | tr '\n' ' ')" = "$(commands | tr '\n' ' ')" ]
}

test_manual_page_has_no_formatting_errors() {
    command -v mandoc >/dev/null || command -v groff >/dev/null || skip "no mandoc and no groff"
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W error "$page"
    else
        [ -z "$(groff -man -ww -z "$page" 2>&1)" ]
    fi
}

test_unknown_command_suggests_the_near_one() {
    status_is 2 quintain serv
    says 'did you mean "serve"?'
    status_is 2 quintain
}

test_unknown_option_suggests_the_near_one() {
    status_is 2 quintain serve --lisen 127.0.0.1 x
    says 'did you mean --listen?'
    status_is 2 quintain serve --size
    says 'value is missing'
    status_is 2 quintain serve
    status_is 2 quintain serve -c a b
    status_is 2 quintain serve -c a --read-only
    status_is 2 quintain serve --block-size 1024 x
    status_is 2 quintain serve --size much x
    status_is 2 quintain status extra
}

test_version_is_told() {
    quintain version | has -E '^quintain [0-9]+\.[0-9]+'
    [ "$(quintain --version)" = "$(quintain version)" ]
}

test_check_tells_what_a_good_file_defines() {
    target_conf <<EOF
	lun 0 { path "$dir/disk" size 8M }
EOF
    status_is 0 quintain check "$dir/conf"
    says '1 target, 1 LUN,'
    [ ! -e "$dir/disk" ]
}

test_check_shows_all_errors_with_line_and_caret() {
    printf 'target %s {\n\tlun 0 { pth /x }\n\tauth-grup a\n}\n' "$iqn" >"$dir/bad"
    status_is 1 quintain check "$dir/bad"
    says "$dir/bad:2:10: "
    says "$dir/bad:3:2: "
    says 'did you mean path?'
    says '^'
}

test_check_refuses_a_missing_file() {
    status_is 1 quintain check "$dir/none"
    says "$dir/none"
}

test_serve_refuses_a_file_with_errors() {
    echo 'nonsense' >"$dir/bad"
    status_is 1 quintain serve -c "$dir/bad"
    says "$dir/bad:1:1"
}

test_status_without_a_daemon_says_so() {
    status_is 1 quintain status --socket "$dir/none.sock"
    says 'no daemon answers'
}

test_status_without_a_daemon_at_the_default_place_says_how_to_name_one() {
    export XDG_STATE_HOME=/nonexistent # short enough for a socket
    [ ! -e /etc/quintain/quintain.conf ] || skip "quintain is set up on this machine"
    [ ! -S /var/lib/quintain/control.sock ] || skip "quintain serves on this machine"
    status_is 1 quintain status
    says '-c FILE'
    says '--socket PATH'
}

run_tests
