"""Labelling configurations: written for data and models, and parsed from projects."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from label_studio_requests import HYPERTEXT

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.formats import write
from spanwise.label_studio.configuration import LabelsTag, parse_configuration, read_types, write_configuration


def test_a_written_configuration_is_parsed_again() -> None:
    types, relations = ["A & B", 'with "quotes"', "<tag>", "Ort'", "药物"], ["is <in>"]
    xml = write_configuration(types, relations)
    labels = ElementTree.fromstring(xml).iter("Label")
    assert [(label.get("value"), str(label.get("background"))[0]) for label in labels] == [(name, "#") for name in types]
    configuration = parse_configuration(xml)
    assert configuration.types == tuple(types)
    assert configuration.relations == {"is <in>"}
    assert (configuration.text_name, configuration.key, configuration.is_html) == ("text", "text", False)
    assert "<Relations>" not in write_configuration(types)


@pytest.mark.parametrize("name", ["", " ", " a", "a\nb", "a\x00b"])
def test_names_that_xml_would_change_are_refused(name: str) -> None:
    with pytest.raises(SpanwiseError, match="printable characters"):
        write_configuration([name])


def test_configurations_of_other_projects() -> None:
    configuration = parse_configuration(
        """<View style="display: flex"><Header value="Title"/><Text name="title" value="$title"/>
        <Choices name="topic" toName="title"><Choice value="News"/></Choices>
        <Labels name="entities" toName="body"><View><Label value="Person" alias="PER"/></View><Label value="Place"/></Labels>
        <Labels name="events" toName="body,title"><Label value="Birth"/></Labels>
        <Labels name="dynamic" toName="body" value="$labels"/>
        <Relations><Relation value="born in"/></Relations><Text name="body" value="$article"/></View>"""
    )
    assert (configuration.text_name, configuration.key) == ("title", "title"), "the first text with labels"
    article = parse_configuration(
        '<View><Labels name="e" toName="body"><Label value="Person" alias="PER"/></Labels><Labels name="f" toName="body">'
        '<Label value="Place"/></Labels><Text name="body" value="$article"/></View>'
    )
    assert article.tags == (LabelsTag("e", "labels", ("PER",)), LabelsTag("f", "labels", ("Place",)))
    assert article.key == "article"
    markup = parse_configuration(HYPERTEXT)
    assert (markup.is_html, markup.tags[0].kind) == (True, "hypertextlabels")


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        ("", "not XML: no element found"),
        ("<View>", "not XML: no element found"),
        ("<View></Text>", "not XML: mismatched tag"),
        ("<View/>", "expected <Text> or <HyperText> with <Labels>"),
        ('<View><Image name="i" value="$i"/><RectangleLabels name="l" toName="i"><Label value="a"/></RectangleLabels></View>',
         "expected <Text>"),
        ('<View><Labels name="l" toName="other"><Label value="a"/></Labels><Text name="t" value="$t"/></View>',
         "expected <Text>"),
        ('<View><Labels name="l" toName="t"><Label value="a"/></Labels><Text name="t" value="fixed"/></View>',
         'expected value="$KEY"'),
        ('<View><Labels name="l" toName="t"><Label value="a"/></Labels><Text name="t" value="$t" valueType="url"/></View>',
         "texts at URLs"),
        ('<!DOCTYPE v [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><View>&b;</View>', "declares the XML entity"),
        ('<!DOCTYPE v [<!ENTITY f SYSTEM "file:///etc/passwd">]><View>&f;</View>', "declares the XML entity"),
        ("<View>&undefined;</View>", "undefined entity"),
        ("<View>" + " " * 1_000_000 + "</View>", "the limit is 1,000,000"),
    ],
)  # fmt: skip
def test_invalid_configurations(xml: str, problem: str) -> None:
    with pytest.raises(SpanwiseError) as caught:
        parse_configuration(xml)
    assert str(caught.value).startswith("labelling configuration:")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_types_of_data(tmp_path: Path) -> None:
    entities = (Entity("Person", ((0, 1),)), Entity("Place", ((2, 3),)))
    sentences = [Sentence("s", ("Ann", "in", "Oslo"), entities, (Relation("lives_in", 0, 1),))]
    write(sentences, tmp_path / "train.jsonl")
    assert read_types(tmp_path) == (["Person", "Place"], ["lives_in"])
    write([Sentence("s", ("Ann",))], tmp_path / "empty.jsonl")
    with pytest.raises(SpanwiseError, match="has no entities"):
        read_types(tmp_path / "empty.jsonl")
