"""What runs in a peer's own environment: takes documents and queries, prints what was found.

Each reads {"url", "documents": {id: text}, "queries": [text], "k"} from standard input and prints
one line: for each query the ids found, best first. The peer's documented calls are used, with its
defaults but for the endpoint of the vectors.
"""

from __future__ import annotations

BM25S = """
import json, sys
import bm25s, Stemmer
given, stemmer = json.load(sys.stdin), Stemmer.Stemmer("english")
def cut(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
ids, index = list(given["documents"]), bm25s.BM25()
index.index(cut(list(given["documents"].values())), show_progress=False)
found, _ = index.retrieve(cut(given["queries"]), k=min(given["k"], len(ids)), show_progress=False)
print(json.dumps([[ids[n] for n in row] for row in found]))
"""
LANGGRAPH = """
import json, sys, urllib.request
from langgraph.store.memory import InMemoryStore
given = json.load(sys.stdin)
def embed(texts):
    body = json.dumps({"input": list(texts), "model": "m"}).encode()
    head = {"content-type": "application/json"}
    asked = urllib.request.Request(given["url"] + "/embeddings", body, head)
    with urllib.request.urlopen(asked) as answer:
        return [row["embedding"] for row in json.load(answer)["data"]]
store = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["text"]})
for key, text in given["documents"].items():
    store.put(("memories",), key, {"text": text})
print(json.dumps([
    [hit.key for hit in store.search(("memories",), query=text, limit=given["k"])]
    for text in given["queries"]]))
"""
MEM0 = """
import json, logging, sys, tempfile
logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
from mem0 import Memory
folder = tempfile.mkdtemp()
memory = Memory.from_config({
    "embedder": {"provider": "openai", "config": {
        "model": "m", "embedding_dims": 384, "openai_base_url": given["url"], "api_key": "k"}},
    "vector_store": {"provider": "qdrant", "config": {
        "path": folder + "/qdrant", "collection_name": "c", "embedding_model_dims": 384}},
    "llm": {"provider": "openai", "config": {"openai_base_url": given["url"], "api_key": "k"}},
    "history_db_path": folder + "/history.db"})
for key, text in given["documents"].items():
    memory.add(text, user_id="u", metadata={"key": key}, infer=False)
rows = []
for text in given["queries"]:
    hits = memory.search(text, filters={"user_id": "u"}, top_k=given["k"], threshold=0.0)
    rows.append([hit["metadata"]["key"] for hit in hits["results"]])
print(json.dumps(rows))
"""
MEMPALACE = """
import contextlib, json, logging, os, sys, tempfile
given = json.load(sys.stdin)
told = os.fdopen(os.dup(1), "w")  # its server takes standard output for itself
folder = tempfile.mkdtemp()
os.environ |= {
    "MEMPALACE_CONFIG_DIR": folder, "MEMPALACE_PALACE_PATH": folder + "/palace",
    "MEMPALACE_EMBEDDING_MODEL": "openai-compat", "MEMPALACE_EMBEDDING_API_URL": given["url"],
    "MEMPALACE_EMBEDDING_API_MODEL": "m", "MEMPALACE_EMBEDDING_API_KEY": "k"}
with contextlib.redirect_stdout(sys.stderr):
    logging.disable(logging.CRITICAL)
    from mempalace.mcp_server import tool_add_drawer
    from mempalace.searcher import search_memories
    for key, text in given["documents"].items():
        done = tool_add_drawer("work", "notes", text, source_file=key)
        assert done.get("success"), done
    rows = []
    for text in given["queries"]:
        found = search_memories(text, os.environ["MEMPALACE_PALACE_PATH"], n_results=given["k"])
        rows.append(list(dict.fromkeys(hit["source_path"] for hit in found["results"])))
print(json.dumps(rows), file=told, flush=True)
"""
SCRIPTS = {"bm25s": BM25S, "langgraph": LANGGRAPH, "mem0": MEM0, "mempalace": MEMPALACE}
