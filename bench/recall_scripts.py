"""What runs in a peer's own environment: takes documents and queries, prints what was found.

Each reads {"url", "works": [{"documents": {id: text}, "queries": [text], "k"}]} from standard input
and prints one line: for each work, for each query, the ids found, best first. The peer's documented
calls are used, with its defaults but for the endpoint of the vectors.
"""

from __future__ import annotations

_EMBED = """
import json, sys, urllib.request
given = json.load(sys.stdin)
def embed(texts):
    body = json.dumps({"input": list(texts), "model": "m"}).encode()
    head = {"content-type": "application/json"}
    asked = urllib.request.Request(given["url"] + "/embeddings", body, head)
    with urllib.request.urlopen(asked) as answer:
        return [row["embedding"] for row in json.load(answer)["data"]]
"""
BM25S = """
import json, sys
import bm25s, Stemmer
stemmer, out = Stemmer.Stemmer("english"), []
for work in json.load(sys.stdin)["works"]:
    ids, texts = list(work["documents"]), list(work["documents"].values())
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False),
                show_progress=False)
    asked = bm25s.tokenize(work["queries"], stopwords="en", stemmer=stemmer, show_progress=False)
    found, _ = index.retrieve(asked, k=min(work["k"], len(ids)), show_progress=False)
    out.append([[ids[n] for n in row] for row in found])
print(json.dumps(out))
"""
LANGGRAPH = (
    _EMBED
    + """
from langgraph.store.memory import InMemoryStore
out = []
for work in given["works"]:
    store = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["text"]})
    for key, text in work["documents"].items():
        store.put(("memories",), key, {"text": text})
    out.append([[hit.key for hit in store.search(("memories",), query=text, limit=work["k"])]
                for text in work["queries"]])
print(json.dumps(out))
"""
)
MEM0 = """
import json, logging, sys, tempfile
logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
from mem0 import Memory
out = []
for n, work in enumerate(given["works"]):
    folder = tempfile.mkdtemp()
    memory = Memory.from_config({
        "embedder": {"provider": "openai", "config": {
            "model": "m", "embedding_dims": 384, "openai_base_url": given["url"], "api_key": "k"}},
        "vector_store": {"provider": "qdrant", "config": {
            "path": folder + "/qdrant", "collection_name": "c", "embedding_model_dims": 384}},
        "llm": {"provider": "openai", "config": {
            "openai_base_url": given["url"], "api_key": "k"}},
        "history_db_path": folder + "/history.db"})
    for key, text in work["documents"].items():
        memory.add(text, user_id="u", metadata={"key": key}, infer=False)
    rows = []
    for text in work["queries"]:
        hits = memory.search(text, filters={"user_id": "u"}, top_k=work["k"], threshold=0.0)
        rows.append([hit["metadata"]["key"] for hit in hits["results"]])
    out.append(rows)
print(json.dumps(out))
"""
MEMPALACE = ""
SCRIPTS = {"bm25s": BM25S, "langgraph": LANGGRAPH, "mem0": MEM0, "mempalace": MEMPALACE}
