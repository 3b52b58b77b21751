"""All commands by hand on a real Kafka and registry."""
import json, os, subprocess, sys, uuid, requests
from pathlib import Path
import pytest
from click.testing import CliRunner
from framework.cli import main
SPEC='''
cluster: main
bootstrap: "{kafka}"
registry: "{registry}"
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
topic: orders
kafka_name: {name}
value: {format}
key: {{format: {key}, columns: {{order_id: bigint}}}}
columns: {{side: string, price: "decimal(9,2)", at: timestamp, parts: "array<string>", deep: "struct<a int, b string>", day: date, data: binary, share: double}}
generate:
  rate: 10/s
  columns:
    order_id: {{between: [1, 9]}}
    side: {{one_of: [BUY, SELL]}}
    price: {{between: [1, 5]}}
    at: {{now: true}}
    day: {{now: true}}
    deep.a: {{between: [1, 5]}}
    share: {{between: [0, 1]}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
'''
@pytest.mark.parametrize("format,key", [("avro","avro"),("json_schema","json_schema"),("protobuf","protobuf")])
def test_it(tmp_path, kafka, registry, monkeypatch, format, key):
    monkeypatch.chdir(tmp_path)
    name=f"t{uuid.uuid4().hex[:8]}"
    Path("specs").mkdir(); Path("specs/a.yaml").write_text(SPEC.format(kafka=kafka,registry=registry,name=name,format=format,key=key))
    def run(*a, given=None):
        d=CliRunner().invoke(main,[*a],input=given)
        print("$",*a); print(d.output)
        if d.exception and not isinstance(d.exception, SystemExit):
            import traceback; traceback.print_exception(d.exception)
    run("generate","orders","--count","3","--seed","1")
    run("generate","orders","--count","2","--seed","1")
    run("send","orders",'{"side":"X","price":1.5,"at":"2026-01-05T10:00:00Z","parts":["a"],"deep":{"a":1},"day":"2026-01-05","data":"AAE="}',"--key",'{"order_id":7}')
    run("send","orders",'{"side":5}')
    run("send","orders",'{"side":5}','--raw')
    run("send","orders",'nope')
    run("send","orders",'-',given='{"side":"a"}\n{"nope":1}\n')
    run("peek","orders","--count","20")
    run("peek","orders","--count","3","--json")
    run("check")
    for d in requests.get(f"{registry}/subjects").json(): print(d)
