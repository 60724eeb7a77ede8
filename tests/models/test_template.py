"""Chat templates: what transformers would write, bounds for hostile ones, errors that name the line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import webgrad as wg
from webgrad.models.template import CHATML, ChatTemplate

HELLO = [{"role": "user", "content": "Hello"}]


def render(text: str, messages: list[dict[str, Any]] | None = None, **values: Any) -> str:
    return ChatTemplate(text, {"bos_token": "<s>", "eos_token": "</s>"}).render(messages or HELLO, **values)


def test_chatml() -> None:
    assert render(CHATML) == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert render(CHATML, add_generation_prompt=False) == "<|im_start|>user\nHello<|im_end|>\n"


@pytest.mark.parametrize(
    ("template", "written"),
    [
        # Blocks take the line they stand on with them, as in transformers.
        ("{% if true %}\n  {% set x = 1 %}\n{{ x }}\n{% endif %}\n", "1\n"),
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>Hello</s>"),
        (
            "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
            "{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "013",
        ),
        ('{{ {"b": [1, "<é>"], "a": none}|tojson }}', '{"b": [1, "<é>"], "a": null}'),
        ("{{ [1]|tojson(indent=2) }}", "[\n  1\n]"),
        (
            "{% set n = namespace(n=0) %}{% for m in [1, 2] %}{% set n.n = n.n + m %}{% endfor %}{{ n.n }}",
            "3",
        ),
        ("{% macro f(x, n=2) %}{{ x * n }}{% endmacro %}{{ f('ab') }}", "abab"),
        ("{% generation %}a{% endgeneration %}b", "ab"),
        ("{{ 'a<think>b</think>c'.split('</think>')[-1] }}{{ 'x, y'.replace(', ', '-') }}", "cx-y"),
        ("{{ ['a', 'b']|join(', ') }}{{ '-'.join(['c', 'd']) }}{{ 'a' ~ 1 ~ none }}", "a, bc-da1None"),
        ("{{ '%s is %d' % ('x', 3) }}{{ '{} {b}'.format(1, b=2) }}{{ '%05d'|format(7) }}", "x is 31 200007"),
        ("{{ messages|map(attribute='role')|list|length }}{{ 'é'|e }}{{ '<'|safe }}{{ '<'|e }}", "1é<&lt;"),
        (
            "{{ undefined_name }}{{ tools is none }}{{ documents is none }}{{ nothing is defined }}",
            "TrueTrueFalse",
        ),
        (
            "{% for k, v in {'a': 1}|items %}{{ k }}{{ v }}{{ loop.last }}{{ loop.length }}{% endfor %}",
            "a1True1",
        ),
        ("{% for x in [[1, [2]]] recursive %}{{ x if x is number else loop(x) }}{% endfor %}", "12"),
        ("{{ 'a\nb'|indent(2) }}{{ 2.5|round|int }}{{ [3, 1]|sort }}{{ 'abc'[1:] }}", "a\n  b2[1, 3]bc"),
        ("{{ strftime_now('%Y')|length }}{{ dict(a=1).a }}", "41"),
    ],
)
def test_what_templates_use(template: str, written: str) -> None:
    assert render(template) == written


HOSTILE = {
    "counts far": "{% for i in range(10**9) %}x{% endfor %}",
    "nested loops": "{% for i in range(9999) %}" * 3 + "{% endfor %}" * 3,
    "repeats a text": "{{ 'a' * 10**10 }}",
    "repeats a list": "{{ [1] * 10**10 }}",
    "writes much": "{% set x = 'a' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}",
    "doubles": "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubles by +": "{% set n = namespace(x='a') %}" + "{% set n.x = n.x + n.x %}" * 99,
    "lists of lists": "{% set n = namespace(x=[1]) %}" + "{% set n.x = [n.x, n.x] %}" * 99 + "{{ n.x }}",
    "calls itself": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "calls double": "{% macro f(n) %}{% if n %}{{ f(n-1) ~ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "filters of filters": "{% set n = namespace(x='ab') %}{% for i in range(9999) %}{% for j in range(99) %}"
    "{% set n.x = n.x|map('upper') %}{% endfor %}{% endfor %}",
    "a block in itself": "{% block a %}{{ self.a() }}{% endblock %}",
    "a large number": "{{ 10**(10**9) }}",
    "a width": "{{ 'a'.center(10**10) }}",
    "a width by filter": "{{ 'a'|center(10**10) }}",
    "a width in %": "{{ '%1000000000s' % 'a' }}",
    "a width given to %": "{{ '%*s' % (10**9, 1) }}",
    "a width in format": "{{ '{:1000000000}'.format(1) }}",
    "a width given to format": "{{ '{:{}}'.format(1, 10**9) }}",
    "many replacements": "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "many joints": "{{ (['a' * 1000000] * 3)|join('b' * 3000000) }}",
    "replacements in a map": "{{ range(9999)|map('string')|map('replace', '1', 'b' * 1000000)|list }}",
    "a precision": "{{ 1|round(10**9, 'ceil') }}",
    "bytes": "{{ (1).to_bytes(10**10, 'big') }}",
    "an indent": "{{ 'a\nb'|indent(10**9) }}",
    "an indent of JSON": "{{ [1]|tojson(indent=10**9) }}",
    "a namespace in itself": "{% set a = namespace() %}{% set a.x = a %}{{ a }}",
    "text in a loop": "{% set x %}{% for i in range(9999) %}" + "y" * 50000 + "{% endfor %}{% endset %}",
    "a recursive loop": "{% for x in range(9999) recursive %}{{ loop(range(9999)) }}{% endfor %}",
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "a long sum": "{{ 1" + "+1" * 5000 + " }}",
    "a time's width": "{{ strftime_now('%1000000000Y') }}",
    "another file": "{% include '/etc/passwd' %}",
    "Python's insides": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "changes its input": "{{ messages.append(1) }}",
    "too long": "x" * 70000,
    # One operation whose work is the product of its operands.
    "strip": "{{ ('a'*1900000).strip('b'*1900000 ~ 'a') }}",
    "trim": "{{ ('a'*1900000)|trim('b'*1900000 ~ 'a') }}",
    "rfind": "{{ ('a'*2000000).rfind('ab' ~ 'a'*1000000) }}",
    "rsplit": "{{ ('a'*2000000).rsplit('ab' ~ 'a'*1000000)|length }}",
    "sort by a path": "{{ (('x'*50000)|list|sort(attribute='0.'*500000 ~ '0'))|length }}",
    "groups by a path": "{{ ('x'*50000)|list|groupby('0.'*500000 ~ '0')|length }}",
    "max by a path": "{{ ('x'*50000)|list|max(attribute='0.'*500000 ~ '0') }}",
    "% of a dictionary": "{{ (('%(a)s'*1500) % {'a': 'x'*1900000})|length }}",
    "a width after a key": "{{ '%(a)1000000000s' % {'a': 1} }}",
    "separators of JSON": "{{ (range(10000)|list|tojson(separators=('x'*300000, ':')))|length }}",
    "deep JSON": "{% set ns = namespace(x=('y'*20000)|list) %}{% for i in range(150) %}"
    "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson(indent=64)|length }}",
    "title": "{{ ('a-'*1900000)|title|length }}",
    "split": "{{ ('a '*1900000).split()|length }}",
    "digits": "{{ ('f'*3900000)|int(0,16) }}",
    "sort": "{{ ('ab'*220000)|list|sort|length }}",
    # Work that no operation does: names, branches, arguments, copies of variables.
    "branches": "{% for a in range(9999) %}{% for b in range(9999) %}"
    + "{% if a %}{% endif %}" * 500
    + "{% endfor %}{% endfor %}",
    "a loop's condition": "{% for a in range(9999) %}{% for b in range(9999) if b > a and false %}"
    "{% endfor %}{% endfor %}",
    "parameters": "{% macro f("
    + ",".join(f"a{i}" for i in range(2000))
    + ") %}{% endmacro %}{% for a in range(9999) %}{% for b in range(9999) %}{% set x = f(1) %}"
    "{% endfor %}{% endfor %}",
    "scoped blocks": "".join(f"{{% set v{i}=1 %}}" for i in range(1500))
    + "{% for a in range(9999) %}{% for i in range(9999) %}{% block q scoped %}{% endblock %}"
    "{% endfor %}{% endfor %}",
    "lookups": "{% set d={'a': 1} %}{% for a in range(9999) %}{% for b in range(9999) %}"
    "{% if d.nope %}{% endif %}{% endfor %}{% endfor %}",
    "small lists": "{% for a in range(9999) %}{% for b in range(9999) %}{% set x=[a,b] %}"
    "{% endfor %}{% endfor %}",
    "namespaces": "{% for a in range(9999) %}{% for b in range(9999) %}{% set n=namespace(a=1) %}"
    "{% endfor %}{% endfor %}",
    # Keys of a dictionary that have one place: numbers apart by the modulus of hashes.
    "keys of one place": "{% set p = 2**61 - 1 %}{% set n = namespace(x=[]) %}"
    "{% for i in range(2000) %}{% set n.x = n.x + [(p * i, 1)] %}{% endfor %}{{ dict(n.x)|length }}",
    "keys that are tuples": "{{ {(1, 2): 3} }}",
    "letters as arguments": "{% macro f() %}{{ varargs|length }}{% endmacro %}{{ f(*('é' * 2000000)) }}",
    "escapes": "{% autoescape true %}{{ '<' * 10 }}{% endautoescape %}",
    # What takes long to compile.
    "many outputs": "{{a}}" * 13000,
    "many comparisons": "{{" + "a<" * 32000 + "a}}",
    "many elements": "{{[" + "1," * 32000 + "]}}",
}


# Run in a process of its own: a template that takes the memory of the process, or ends it, is found too.
CHILD = """
import json, sys, time
import webgrad as wg
from scripts.fuzzing import limit_memory

wg.models.ChatTemplate("{{ 1 }}").render([{"role": "user", "content": "x"}])
limit_memory(256 << 20)
for name, text in json.load(sys.stdin).items():
    start = time.process_time()
    try:
        outcome = "rendered: " + wg.models.ChatTemplate(text).render([{"role": "user", "content": "Hello"}])
    except wg.ModelFileError as error:
        outcome = str(error)
    print(json.dumps([name, outcome[:300], time.process_time() - start]), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, float]]:
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(HOSTILE), capture_output=True, text=True
    )
    rows = [json.loads(line) for line in child.stdout.splitlines()]
    return {name: (outcome, seconds) for name, outcome, seconds in rows} | {"stderr": (child.stderr, 0.0)}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_are_refused_in_time_and_memory(
    name: str, outcomes: dict[str, tuple[str, float]]
) -> None:
    outcome, seconds = outcomes.get(name, outcomes["stderr"])
    assert outcome.startswith("the model's chat template"), outcome
    assert "MemoryError" not in outcome
    assert seconds < 5  # of processor time; about one on a quiet machine


def test_work_is_counted_and_not_timed() -> None:
    """A template is refused on every machine or on none."""
    from webgrad.models import fuel

    def left(text: str) -> int:
        tank = fuel.Fuel()
        token = fuel.FUEL.set(tank)
        try:
            ChatTemplate(text)._compile().render()
        finally:
            fuel.FUEL.reset(token)
        return tank.left

    template = "{% for i in range(100) %}{{ ('a' * i)|upper ~ [i, {'b': i}]|tojson }}{% endfor %}"
    assert left(template) == left(template) < fuel.ALL_FUEL


def test_long_conversations_fit() -> None:
    template = (
        "{% for m in messages %}{{ m.role + ': ' + m.content.split('</think>')[-1]|trim }}"
        "{% if loop.index0 == messages|length - 1 %}.{% endif %}{% endfor %}"
    )
    messages = [{"role": "user", "content": "x" * 1000}] * 1000
    assert len(render(template, messages)) == 1_006_001


def test_errors_name_the_line() -> None:
    with pytest.raises(wg.ModelFileError, match="cannot be read, line 3"):
        render("a\nb\n{% if %}")
    with pytest.raises(wg.ModelFileError, match="failed, line 3: UndefinedError: 'x' is undefined"):
        render("a\n\n{{ x.y.z }}")
    with pytest.raises(wg.ArgumentError, match="refuses these messages: roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("Hello", "must be a list"),
        ([], "is empty"),
        (["Hello"], r"messages\[0\] must have a \"role\""),
        ([{"role": "user"}], r"messages\[0\] must have a \"content\""),
        ([{"role": "x|><|im_start|", "content": ""}], "roles are plain words"),
        ([{"role": "user", "content": None}], r"messages\[0\] has a content that is a NoneType"),
        ([{"role": "user", "content": 5}], "a content that is a int; it must be a text"),
        ([{"role": "user", "content": [object()]}], r"messages\[0\] holds a object"),
    ],
)
def test_messages_are_checked(messages: Any, message: str) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        ChatTemplate(CHATML).render(messages)


def test_a_template_sees_plain_values_only() -> None:
    class Text(str):
        def secret(self) -> str:
            return "s"

    with pytest.raises(wg.ModelFileError, match="failed"):
        render("{{ messages[0].content.secret() }}", [{"role": "user", "content": Text("x")}])


def test_renderings_do_not_share_a_budget() -> None:
    template = ChatTemplate("{{ 'a' * 3000000 }}")
    assert [len(template.render(HELLO)) for _ in range(40)] == [3000000] * 40
