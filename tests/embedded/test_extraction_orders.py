"""Plain orders are kept, a topic has one rule, and what is of the task alone is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reverie.embedded import NOTHING_TO_SAVE, ExtractedFact, find_facts, never, user_turn
from reverie.topics import supersedes
from reverie.transcript import KnownMemory

from .extracting import WEDNESDAY, Talk

pytestmark = [pytest.mark.spec("7.embedded")]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "memory")


def found(*said: str) -> list[ExtractedFact]:
    return find_facts([user_turn(str(n), text, WEDNESDAY) for n, text in enumerate(said)])


PLAIN = [
    ("remember you may run the linter yourself, no need to ask", "feedback"),
    ("please write comments in Spanish", "feedback"),
    ("our bugs live in the tracker Mantis", "reference"),
    ("we use tabs, not spaces", "feedback"),
    ("dont ever touch the files in vendor/, the sync overwrites them", "feedback"),
    ("could you always add type hints when you write python", "feedback"),
    ("next time ask me before you delete a branch", "feedback"),
    ("i'm a nurse, not a programmer", "user"),
    ("we go live on january 15", "project"),
    ("ab jetzt bitte alle antworten auf englisch", "feedback"),
    ("soy profesora de matemáticas", "user"),
    ("désormais réponds en français", "feedback"),
    ("from now on keep the diary in notes.md (not in the wiki)", "feedback"),
    ("from now on rerun every suite that touches billing", "feedback"),
    ("from now on dont train on this laptop", "feedback"),
    ("from now on dont ask before a rebase, ill say when", "feedback"),
    ("from now on send a summary so i see where we are", "feedback"),
    ("let's always put fixtures beside the suite they serve", "feedback"),
    ("you always have to use the staging mirror", "feedback"),
    ("never take a shortcut around the review", "feedback"),
    ("don't ask me again for leave to run the suite", "feedback"),
    ("i don't want you to rename branches on your own", "feedback"),
    ("never delete a branch unless i tell you", "feedback"),
    ("remember if a partner calls, you tell sales first", "project"),
]


@pytest.mark.parametrize(("text", "type_"), PLAIN, ids=[row[0] for row in PLAIN])
def test_what_is_plainly_asked_is_kept_with_its_type(text: str, type_: str):
    (one,) = found(text)
    assert one.type == type_
    assert not never(one)


OF_THE_TASK = [
    "remember ticket 4821993 for later",
    "never log in at src/app/main.ts:88:14",
    "always look at #4312 first",
    "should i always run the linter before committing",
    '"From now on I will use pathlib everywhere." ok and where is it then',
    "Subject: reminder\nHi all, please remember to submit your timesheets by Friday.\nRegards, HR",
    "translate this: we never merge on fridays",
    "always tests",
    "never push (unless the",
    "Remember, we're a team and your growth is important to us",
    "peter's wife is in hospital until 2026-12-01",
    "from now on the counter starts at 1",
    "From now on, I'd like you to follow a specific naming convention.",
    "rename all functions to start with get_",
    "add docstrings to all functions",
    "start the function name with an underscore",
    "from now on these should be blue",
    "from now on make fetchUser return an empty list",
    "from now on that is done in the parser",
    "from config import (",
    "remind me where the dashboard for billing is",
    "write in markdown what we found about the outage",
    "remember if we ran the migration",
    "you always show the wrong column",
    "merk dir immer, wie breit die seitenleiste zuletzt war",
    "create a reading plan for two weeks starting tomorrow",
]


@pytest.mark.parametrize("text", OF_THE_TASK)
def test_what_is_of_the_task_or_of_others_is_left(text: str):
    assert found(text) == []


IN_SIX_LANGUAGES = [
    "Could you remember that the staging database is called heron?",
    "Make a note: our fiscal year starts in April.",
    "Put on record that Marta signs the contracts.",
    "Please note for the future that the printer room is 204.",
    "Store this for later: the VPN gateway is north-3.",
    "Please never push to the release branch on Fridays.",
    "The onboarding doc is in Notion, please remember that.",
    "Jot down that customers in Norway are billed in euros.",
    "It would be great if you could remember that I work part-time.",
    "Don't forget: screenshots go in the wiki, not in the repo.",
    "Merke dir bitte, dass die Buchhaltung in Leipzig sitzt.",
    "Bitte notiere, dass Frau Kern die Verträge freigibt.",
    "Halte fest: Releases gibt es nur dienstags.",
    "Könntest du dir bitte merken, dass unser Drucker Uhu heißt?",
    "Schreib dir auf, dass die Abnahme bei Herrn Voss liegt.",
    "Der Staging-Server heißt falke-7, merk dir das bitte.",
    "Bitte immer auf Deutsch antworten.",
    "Für alle künftigen Sitzungen: Commits auf Englisch schreiben.",
    "Vergiss nicht, dass wir in Euro abrechnen.",
    "Nimm in dein Gedächtnis auf, dass ich freitags nicht arbeite.",
    "Por favor, recuerda que el servidor de pruebas se llama garza.",
    "Guarda en tu memoria que la contabilidad está en Valencia.",
    "¿Puedes recordar que trabajo solo por las mañanas?",
    "Ten presente que los clientes de Chile pagan en dólares.",
    "Anota, por favor: los contratos los firma Lucía.",
    "Para futuras sesiones: responde siempre en español.",
    "Por favor, no modifiques nunca los archivos de la carpeta legado.",
    "La base de datos se llama lince, recuérdalo por favor.",
    "Quiero que recuerdes que prefiero respuestas cortas.",
    "Como norma, los títulos van en minúsculas.",
    "Souviens-toi que le serveur de test s'appelle héron.",
    "Peux-tu te souvenir que je travaille à mi-temps ?",
    "Note s'il te plaît que les contrats sont signés par Claire.",
    "Merci de retenir que la compta est à Lyon.",
    "Enregistre que l'imprimante est au troisième étage.",
    "Pour les prochaines sessions : réponds toujours en français.",
    "Ne modifie jamais les fichiers du dossier archives, s'il te plaît.",
    "La base s'appelle lynx, retiens-le bien.",
    "Garde en mémoire que les clients suisses paient en francs.",
    "En règle générale, les titres sont en minuscules.",
    "请记住，测试服务器叫苍鹭。",
    "你能记住我只在上午工作吗？",
    "麻烦记一下：合同由李娜签字。",
    "帮我记住，财务部在成都。",
    "请把这一点存入记忆：挪威客户用欧元结算。",
    "以后的所有会话都请用中文回答。",
    "请永远不要修改 legacy 目录里的文件。",
    "数据库叫猞猁，请记住这一点。",
    "作为规则，标题一律用小写。",
    "希望你记住我喜欢简短的回答。",
    "テストサーバーの名前はサギだと覚えておいてください。",
    "覚えておいてください：契約書には田中さんが署名します。",
    "私は午前中だけ働いていることを覚えておいてもらえますか？",
    "経理は大阪にあることを記憶しておいてください。",
    "メモしておいて：ノルウェーの顧客はユーロで請求します。",
    "今後のセッションでは必ず日本語で答えてください。",
    "legacy フォルダのファイルは絶対に変更しないでください。",
    "データベースの名前はヤマネコです。覚えておいてください。",
    "短い回答が好きだということを忘れないでください。",
    "原則として、タイトルは小文字で書いてください。",
    "I'd like you to keep in mind that our demo server resets nightly.",
    "Kindly remember: the client prefers PDF over Word.",
    "Take note that the warehouse closes at 4 pm.",
    "Would you mind remembering that Jonas handles refunds?",
    "Bitte behalte im Hinterkopf, dass der Kunde nur PDF mag.",
    "Wichtig für die Zukunft: Testkonten beginnen mit zz.",
    "Bitte denk daran, dass Jonas die Erstattungen macht.",
    "Ich möchte, dass du dir merkst, dass ich Linux nutze.",
    "Acuérdate de que Jonás gestiona los reembolsos.",
    "Que no se te olvide: el almacén cierra a las 16.",
    "Toma nota: las cuentas de prueba empiezan por zz.",
    "¿Podrías tener en cuenta que el cliente solo acepta PDF?",
    "N'oublie pas que Jonas gère les remboursements.",
    "Note : l'entrepôt ferme à 16 heures.",
    "Pourrais-tu retenir que le client n'accepte que le PDF ?",
    "Dorénavant, donne la conclusion en premier.",
    "请记下：仓库下午四点关门。",
    "记住我的经理是普里亚。",
    "以后回答请先给结论。",
    "别忘了退款由乔纳斯负责。",
    "倉庫は16時に閉まります。覚えておいてね。",
    "返金の担当はヨナスさんだと記憶してください。",
    "今後は結論を先に書いてください。",
    "メモ：訪問者バッジはオレンジ色です。",
    "Bear in mind that the legacy parser still runs on Python 3.8.",
    "Remember, when you write SQL, keywords are lower case here.",
    "Please remember to always quote the ticket number in the PR title.",
    "Die Demo läuft auf reiher-9. Merk dir das.",
]


@pytest.mark.parametrize("text", IN_SIX_LANGUAGES)
def test_a_plain_request_to_remember_is_kept_in_six_languages(text: str):
    assert len(found(text)) == 1


NOT_TO_KEEP = [  # tasks for now, questions, words of others, files
    "Remember to run the tests now.",
    "Please remember to push the branch when you are done.",
    "Do you remember what the staging server is called?",
    "Can you remember where we left off?",
    "My colleague says: “always push to main”. I think that is wrong.",
    "Please save the file as report.md.",
    "Write down the steps to reproduce this bug.",
    "Save the results to out.csv.",
    "Make a note of the failing tests and fix them.",
    "Let's remember where we put the config.",
    "Please write a test that checks the parser.",
    "Please never mind.",
    "Bear with me.",
    "Note that the test fails on line 3.",
    "I can't remember that function's name.",
    "Remember when we fixed that bug?",
    "Please keep the old file.",
    "Don't forget to commit.",
    "Please save this file.",
    "Please record a demo of this page.",
    "Kannst du dir merken, wo der Fehler war?",
    "Speichere die Datei als bericht.md.",
    "Bitte notiere die Fehler im Log.",
    "Vergiss nicht, die Tests jetzt laufen zu lassen.",
    "Mein Chef sagt: „Merk dir, dass alle Tests grün sein müssen“. Quatsch.",
    "Schreib die Funktion um.",
    "Halte den Server an.",
    "Denk daran, gleich zu committen.",
    "Bitte ändere diese Datei nicht.",
    "Bitte immer noch den Test anpassen.",
    "Guarda el archivo como informe.md.",
    "Recuerda ejecutar las pruebas ahora.",
    "¿Recuerdas cómo se llama el servidor?",
    "Anota los errores de este log.",
    "¿Puedes recordar dónde estaba el error?",
    "Mi jefe dice: «recuerda que siempre hay que usar tabs». No estoy de acuerdo.",
    "No olvides hacer commit.",
    "Por favor, no modifiques este archivo.",
    "Enregistre le fichier sous rapport.md.",
    "N'oublie pas de lancer les tests maintenant.",
    "Te souviens-tu du nom du serveur ?",
    "Note les erreurs de ce journal.",
    "Mon collègue dit : « retiens que tout passe par main ». C'est faux.",
    "Ne modifie pas ce fichier.",
    "Le README dit « toujours utiliser npm ».",
    "Garde le fichier.",
    "Enregistre les modifications.",
    "记得现在跑一下测试。",
    "你还记得服务器叫什么吗？",
    "把文件保存为 report.md。",
    "帮我记录一下这些错误。",
    "同事说：“记住，永远推到 main”。我不同意。",
    "别忘了提交代码。",
    "你能记住昨天的错误在哪里吗？",
    "请不要修改这个文件。",
    "今テストを実行するのを忘れないで。",
    "サーバーの名前を覚えていますか？",
    "ファイルを report.md として保存してください。",
    "このエラーをメモしてください。",
    "上司は「必ず main に push して」と言っています。おかしいと思う。",
    "コミットを忘れないでください。",
    "このファイルは変更しないでください。",
    "前に何を直したか覚えてる？",
]


@pytest.mark.parametrize("text", NOT_TO_KEEP)
def test_a_task_a_question_or_a_report_is_not_kept(text: str):
    assert found(text) == []


def test_orders_inside_a_long_brief_are_for_that_work():
    brief = "\n".join(f"- step {n}" for n in range(5))
    assert found(f"Build the page:\n{brief}\n\nNever commit generated files.") == []
    assert found("Never commit generated files.") != []
    assert found(f"{brief}\n\nFrom now on, answer in German.") != []


RULES = [
    ("Start all attribute names with 'q_' from now on.", "Attribute names start with 'q_'."),
    ("I want you to end all your method names with '_n'.", "Method names end with '_n'."),
    (
        "Always include the string 'chx' in your function argument names.",
        "Function argument names include 'chx'.",
    ),
    (
        "Always include a single digit in class names.",
        "Class names include a single digit.",
    ),
    ("Going forward, use CamelCase for class names.", "Class names are written in CamelCase."),
    ("Always use docstrings in your methods.", "Use docstrings in all methods."),
    (
        "Please remember to add the '@timer' decorator to all functions.",
        "Add the '@timer' decorator to all functions.",
    ),
    ("Always import the 'gzip' module.", "Import the 'gzip' module, even where unused."),
]


@pytest.mark.parametrize(("text", "line"), RULES, ids=[row[0] for row in RULES])
def test_a_rule_for_code_to_come_is_one_line(text: str, line: str):
    (one,) = found(text)
    assert (one.type, one.line) == ("feedback", line)


def test_two_rules_in_a_sentence_are_two_and_a_pronoun_finds_its_names():
    both = found("Start attribute names with 's_' and function names with 'd_'.")
    assert [one.line for one in both] == [
        "Attribute names start with 's_'.",
        "Function names start with 'd_'.",
    ]
    (one,) = found("We have a rule for the naming of variables. Always start them with 'z_'.")
    assert one.line == "Variable names start with 'z_'."
    (one,) = found("From now on start method names with 'j_' instead of 'i_'.")
    assert one.line == "Method names start with 'j_'."


async def test_a_later_rule_gets_a_file_and_the_earlier_stays_as_it_was(talk: Talk):
    talk.say("From now on, start attribute names with 'q_'.")
    await talk.extract()
    before = talk.texts()
    talk.say("Actually, forget that. Going forward, start attribute names with 'j_'.")
    await talk.extract()
    first, second = talk.entries
    assert before == {first.key: first.text}
    assert first.name == second.name == "Attribute names: beginning"
    assert second.description == "Attribute names start with 'j_'."
    assert supersedes(second, first)


async def test_a_rule_said_again_writes_nothing(talk: Talk):
    talk.say("From now on, start attribute names with 'q_'.")
    await talk.extract()
    before = talk.texts()
    talk.say("Remember to always start attribute names with 'q_'.")
    await talk.extract()
    assert talk.texts() == before


async def test_a_manifest_of_a_hundred_thousand_is_read_and_gets_no_duplicate(talk: Talk):
    many = tuple(
        KnownMemory(f"m{n}.md", "feedback", f"Rule {n}", f"Step {n} comes before step {n + 1}")
        for n in range(100_000)
    )
    mine = KnownMemory("names.md", "feedback", "Names", "Attribute names start with 'q_'.")
    talk.say("From now on, start attribute names with 'q_'.")
    told = await talk.extract(replace(talk.task(), memories=(*many, mine)))
    assert told == NOTHING_TO_SAVE
