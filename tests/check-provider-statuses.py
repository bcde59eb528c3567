#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the provider returns with src/base/status_table.def.

    check-provider-statuses.py [-v]

 - every status that a slot of a dispatch table can return has a row for its function: the status
   names in the body of the C function behind the slot, and in all functions it takes a status
   from, helpers that several slots share included (take_qp, sges_copy, conn_status_from_connect)
 - so has every status with which the end of a connection answers a request that pends: ENDS says
   which requests those are, and is complete
 - every object_fail(object, CALL_X, STATUS_Y, ...) has a row for (X, Y), but for those whose status
   nobody returns: NOT_RETURNED
 - every row of ours (OURS) can be returned; NDKPI's own rows may well be more than we return

Reads src/provider and src/conn as text. A name that is compared (==, !=, case) or handed to a
function without a status of its own is not returned. What SOFTNDK_FAIL asks for is not seen: that
is any status. -v prints what each function returns.

Prints what differs, one line each, then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import re
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report, load
header_statuses = load("check-header-statuses.py")

CONNECT = {"NdkConnect", "NdkConnectWithSharedEndpoint"}
COMPLETE = {"NdkCompleteConnect", "NdkCompleteConnectEx"}
ACCEPT = {"NdkAccept", "NdkAcceptEx"}
DISCONNECT = {"NdkDisconnect"}
UP = COMPLETE | ACCEPT | DISCONNECT  # whatever pends once both sides have agreed
NOBODY = set()  # before the consumer knows the connector, or with nothing pending

# The functions that end a connection, and the requests which that end may answer. A status handed
# through a parameter counts where its name stands.
END_CALLS = {"conn_end", "conn_end_locked", "connect_failed", "read_frame", "connected",
             "established", "ended"}
# What conn_status_from_connect() gives beside STATUS_IO_TIMEOUT.
LOST_BEFORE_THE_REPLY = [
    "STATUS_ADDRESS_ALREADY_EXISTS", "STATUS_CONNECTION_REFUSED", "STATUS_HOST_UNREACHABLE",
    "STATUS_INSUFFICIENT_RESOURCES", "STATUS_INVALID_ADDRESS", "STATUS_NETWORK_UNREACHABLE",
    "STATUS_SHARING_VIOLATION"]
ENDS = {
    "startup.c:connecting": {"any": CONNECT},
    "startup.c:startup_end_if_dead": {"STATUS_INTERNAL_ERROR": CONNECT | ACCEPT},
    "startup.c:send_request": {"STATUS_INSUFFICIENT_RESOURCES": CONNECT},
    "startup.c:judge_reply": {"STATUS_INSUFFICIENT_RESOURCES": CONNECT,
                              "STATUS_CONNECTION_REFUSED": CONNECT},
    "startup.c:startup_receive": {"STATUS_CONNECTION_REFUSED": CONNECT,
                                  "STATUS_CONNECTION_ABORTED": NOBODY},
    "startup_passive.c:startup_request": {"STATUS_INSUFFICIENT_RESOURCES": NOBODY,
                             "STATUS_CONNECTION_ABORTED": NOBODY},
    "startup.c:watch_decision": {"STATUS_CONNECTION_ABORTED": COMPLETE},
    "startup_passive.c:conn_reject": {"STATUS_CONNECTION_REFUSED": NOBODY},
    "startup.c:conn_complete": {"STATUS_INSUFFICIENT_RESOURCES": COMPLETE},
    "startup.c:startup_deadline": {"STATUS_IO_TIMEOUT": CONNECT | COMPLETE | ACCEPT,
                                   "STATUS_CONNECTION_ABORTED": NOBODY},
    "conn.c:timer_fired": {"STATUS_IO_TIMEOUT": DISCONNECT},
    "conn.c:conn_move_now": {"STATUS_INSUFFICIENT_RESOURCES": ACCEPT},
    "rx.c:fin_in": {"STATUS_CONNECTION_REFUSED": ACCEPT, "STATUS_CONNECTION_ABORTED": UP},
    "close.c:conn_lost": {**dict.fromkeys(LOST_BEFORE_THE_REPLY, CONNECT),
                          "STATUS_IO_TIMEOUT": CONNECT | UP, "STATUS_CONNECTION_ABORTED": UP},
    "rx.c:terminate_in": {"STATUS_CONNECTION_ABORTED": UP},
    "rx.c:rx_parse": {"STATUS_CONNECTION_ABORTED": UP},
    "partial.c:account": {"STATUS_INSUFFICIENT_RESOURCES": UP},
    "partial.c:partial_keep": {"STATUS_INSUFFICIENT_RESOURCES": UP},
    "rx.c:rx_flush": {"STATUS_CANCELLED": UP},
    "tx.c:requests_flush": {"STATUS_CANCELLED": UP},
    "tx.c:batch_send": {"STATUS_INSUFFICIENT_RESOURCES": UP},
    "close.c:end_with": {"STATUS_CONNECTION_ABORTED": CONNECT | UP,
                         "STATUS_INSUFFICIENT_RESOURCES": UP},
    "close.c:conn_overrun": {"STATUS_INTERNAL_ERROR": CONNECT | UP},
    "close.c:refuse_locked": {"STATUS_CANCELLED": NOBODY},
    "close.c:conn_close": {"STATUS_CANCELLED": CONNECT | UP},
}

# Failures that leave a reason behind but are the return value of nothing.
NOT_RETURNED = {
    "cq.c:cq_die",  # the queue's notification
    "cq.c:cq_arm",  # NdkArmCq returns nothing
    "listener.c:listener_accept",  # an incoming connection is lost
    "listener.c:listener_control",  # NdkControlConnectEvents returns nothing
}

# Names in calls.def that stand for several functions of the table, or for one of another name.
CALL_NAMES = {
    "NdkClose": ["NdkCloseObject"],
    "NdkGetLocalAddress": ["NdkGetLocalAddress", "NdkGetListenerLocalAddress",
                           "NdkGetSharedEndpointLocalAddress"],
}

NEVER_LISTED = {"STATUS_SUCCESS", "STATUS_PENDING"}  # base_status_test sees to these
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "__builtin_expect"}
TOKEN = re.compile(r"[A-Za-z_]\w*|==|!=|[^\s\w]|\d\w*")


class Function:
    def __init__(self, file, head, name, parameters, body):
        self.name = name
        self.place = f"{file.name}:{name}"
        self.file = file
        self.static = head.split()[0] == "static"
        self.gives_status = "NTSTATUS" in head or re.search(r"NTSTATUS \*", parameters) is not None
        self.tokens = TOKEN.findall(body)


def strip(text):
    """Without comments, strings, characters and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', "0", text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def files(directory, pattern):
    return [p for p in sorted((ROOT / directory).glob(pattern)) if not p.stem.endswith("_test")]


class Sources:
    def __init__(self):
        self.functions = []
        self.bodies = 0  # opening braces of function bodies: all of them are to be read
        self.slots = []  # (dispatch structure, slot, C function)
        definition = re.compile(r"^((?:[A-Za-z_]\w*[ *]+)+)\*?(\w+)\(([^;{}]*?)\)\s*\n\{\n(.*?)^\}",
                                re.DOTALL | re.MULTILINE)
        tables = re.compile(r"\bNDK_(\w+)_DISPATCH \w+ = \{(.*?)^\};", re.DOTALL | re.MULTILINE)
        for file in files("src/provider", "*.c") + files("src/conn", "*.c"):
            text = strip(file.read_text())
            for match in definition.finditer(text):
                self.functions.append(Function(file, *match.groups()))
            self.bodies += len(re.findall(r"^\{$", text, re.MULTILINE))
            for table, body in tables.findall(text):
                for slot, name in re.findall(r"\.(\w+) = (\w+)", body):
                    self.slots.append((table, slot, name))
        self.status_names = {f.name for f in self.functions if f.gives_status}
        headers = "".join(strip(p.read_text()) for p in sorted((ROOT / "src").rglob("*.h")))
        self.declared = set(re.findall(r"^NTSTATUS (\w+)\(", headers, re.MULTILINE))
        self.known = {}

    def find(self, name, near=None):
        """The function of that name that a file sees."""
        found = [f for f in self.functions if f.name == name and near and f.file == near]
        found = found or [f for f in self.functions if f.name == name and not f.static]
        return found[0] if found else None

    def read(self, tokens, inside=None):
        """(index, token, [callees around it]) of the status names and of the calls of functions
        that give a status. inside: only what is an argument of one of these functions."""
        stack = []
        for i, token in enumerate(tokens):
            before, after = tokens[i - 1] if i else "", tokens[i + 1] if i + 1 < len(tokens) else ""
            if token == "(":
                stack.append(before if re.match(r"[A-Za-z_]", before) else "")
            elif token == ")":
                stack.pop()
            elif inside and not any(s in inside for s in stack):
                continue
            elif token.startswith("STATUS_"):
                if before not in ("==", "!=", "case") and after not in ("==", "!="):
                    yield i, token, stack
            elif after == "(" and (token in self.status_names or token in self.declared):
                yield i, token, stack

    def returned(self, function, trail=()):
        """The statuses that a function gives, its callees' included."""
        if function.place in self.known:
            return self.known[function.place]
        result = set()
        for _, token, stack in self.read(function.tokens):
            if any(s and s not in KEYWORDS and s not in self.status_names for s in stack):
                continue  # handed to somebody else
            result |= self.meaning(token, function, trail)
        if not trail:
            self.known[function.place] = result
        return result

    def meaning(self, token, function, trail=()):
        """What a status name, or the call of a function that gives a status, stands for."""
        if token.startswith("STATUS_"):
            return {token} - NEVER_LISTED
        callee = self.find(token, function.file)
        if not callee:
            return {f"(what {token} returns, of a file that is not read)"}
        if callee.place in trail or callee is function:
            return set()
        return self.returned(callee, trail + (function.place,))

    def ends(self, function):
        """The statuses with which a function ends a connection."""
        result = set()
        for _, token, _ in self.read(function.tokens, END_CALLS):
            if token not in END_CALLS:
                result |= self.meaning(token, function)
        return result


def third_arguments(tokens, callee):
    """(second argument, tokens of the third) of each call of callee."""
    for i, token in enumerate(tokens):
        if token != callee or tokens[i + 1] != "(":
            continue
        arguments, depth = [[]], 0
        for word in tokens[i + 2:]:
            if word == ")" and depth == 0:
                break
            depth += (word in "([") - (word in ")]")
            if word == "," and depth == 0:
                arguments.append([])
            else:
                arguments[-1].append(word)
        if len(arguments) > 2:
            yield " ".join(arguments[1]), arguments[2]


def slot_types():
    """(dispatch structure, slot) -> type of the function."""
    types = {}
    for path in sorted((ROOT / "include/ndk").glob("ndkpi*.h")):
        for table, body in re.findall(r"struct _NDK_(\w+)_DISPATCH \{(.*?)\n\}", path.read_text(),
                                      re.DOTALL):
            for kind, slot in re.findall(r"^\s*(NDK_FN_\w+)\s+(\w+);", body, re.MULTILINE):
                types[(table, slot)] = kind
    return types


def read_answers(report, sources):
    """Function of the table -> the statuses that the end of a connection answers it with."""
    answers = {}
    seen = set()
    for function in (f for f in sources.functions if f.file.parent.name == "conn"):
        found = sources.ends(function)
        if not found:
            continue
        seen.add(function.place)
        want = ENDS.get(function.place)
        if want is None:
            report.check(False, f"{function.place} ends a connection with {sorted(found)}: "
                                "say in ENDS which requests that answers")
            continue
        if "any" not in want:
            report.equal(sorted(found), sorted(want), f"{function.place} in ENDS: its statuses")
        for status in found:
            for name in want.get(status, want.get("any", NOBODY)):
                answers.setdefault(name, set()).add(status)
    report.equal(sorted(set(ENDS) - seen), [], "ENDS: functions that end no connection")
    return answers


def check_pairs(report, sources, rows):
    """object_fail() with both names written out, and requests completed with a literal."""
    text = (ROOT / "src/provider/calls.def").read_text()
    calls = {f"CALL_{i}": name for i, name in re.findall(r'^CALL\((\w+), "(\w+)"\)', text,
                                                        re.MULTILINE)}
    silent = set()
    for function in sources.functions:
        for call, third in third_arguments(function.tokens, "object_fail"):
            statuses = [token for _, token, _ in sources.read(third) if token.startswith("STATUS_")]
            if call not in calls or not statuses:
                continue
            if function.place in NOT_RETURNED:
                silent.add(function.place)
                continue
            names = CALL_NAMES.get(calls[call], [calls[call]])
            for status in statuses:
                report.check(any(status in rows.get(name, ()) for name in names),
                             f"{function.place} fails {call} with {status}: no row of {names}")
        for _, token, _ in sources.read(function.tokens, {"request_complete"}):
            report.check(token in NEVER_LISTED, f"{function.place} completes a request with "
                                                f"{token}, which this check does not follow")
    report.equal(sorted(NOT_RETURNED - silent), [], "NOT_RETURNED: functions that do not fail so")
    for name in sorted(set(calls.values())):
        for function in CALL_NAMES.get(name, [name]):
            report.check(function in rows, f"calls.def: {function} is not in the table")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", action="store_true", help="print what each function returns")
    arguments = parser.parse_args()

    report = Report()
    functions, _ = header_statuses.read_table()
    rows = {f.name: {s.name: s for s in f.statuses} for f in functions.values()}
    by_type = {f.type: f.name for f in functions.values()}
    sources = Sources()
    types = slot_types()
    returned = read_answers(report, sources)

    report.equal(len(sources.functions), sources.bodies, "function bodies read of those there are")
    report.check(len(sources.slots) >= 55, f"only {len(sources.slots)} slots found in src/provider")
    for table, slot, c_name in sources.slots:
        name = by_type.get(types.get((table, slot)))
        function = sources.find(c_name)
        function = function or next((f for f in sources.functions if f.name == c_name), None)
        report.check(name and function, f"{table}.{slot} = {c_name}: not found")
        if name and function and functions[name].model not in ("VALUE", "VOID"):
            report.check(function.gives_status, f"{function.place}: gives no status")
            returned.setdefault(name, set()).update(sources.returned(function))
    for name, listed in rows.items():
        have = returned.get(name, set())
        if arguments.v and have:
            print(f"{name}: {' '.join(sorted(s.replace('STATUS_', '') for s in have))}")
        for status in sorted(have):
            report.check(status in listed, f"{name} returns {status}: no row")
        for row in listed.values():
            if row.how.endswith("*"):
                report.check(row.name in have, f"{name}: nothing returns {row.name}, a row of ours")
    check_pairs(report, sources, rows)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
