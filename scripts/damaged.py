"""Which modules are damaged by `scripts.mutants`, by which tests that is noticed, and the damages
that are written down."""

from __future__ import annotations

from scripts.manifest import Mutation

TESTS: dict[str, tuple[str, ...]] = {
    "session/conversation": (
        "tests/session/test_session.py",
        "tests/session/test_power.py",
        "tests/session/test_cancel.py",
        "tests/session/test_hostile.py",
        "tests/session/test_kept.py",
        "tests/session/test_jobs.py",
        "tests/session/test_crash.py",
    ),
    "store/journal": ("tests/store/test_journal.py", "tests/session/test_power.py"),
    "store/history": (
        "tests/memory/test_history.py",
        "tests/store/test_power.py",
        "tests/memory/test_growth.py",
        "tests/memory/test_undo.py",
    ),
    "store/heads": ("tests/memory/test_growth.py",),
    "store/growing": ("tests/memory/test_growth.py", "tests/store/test_power.py"),
    "store/long_index": ("tests/memory/test_growth.py",),
    "store/objects": (
        "tests/store/test_objects.py",
        "tests/memory/test_history.py",
        "tests/memory/test_growth.py",
    ),
    "store/landing": (
        "tests/session/test_landing.py",
        "tests/memory/test_undo.py",
        "tests/store/test_power.py",
        "tests/fleet/test_fences.py",
    ),
    "transcript/fold": (
        "tests/transcript/test_fold.py",
        "tests/transcript/test_boundaries.py",
        "tests/session/test_session.py",
        "tests/session/test_kept.py",
        "tests/layers",
    ),
    "store/files": (
        "tests/store/test_folder.py",
        "tests/store/test_crash.py",
        "tests/store/test_power.py",
    ),
    "store/plain": (
        "tests/store/test_folder.py",
        "tests/store/test_journal.py",
        "tests/store/test_power.py",
    ),
    "store/memory": (
        "tests/memory/test_folder.py",
        "tests/memory/test_growth.py",
        "tests/memory/test_history.py",
    ),
    "store/memories": (
        "tests/upkeep/test_forget.py",
        "tests/memory/test_history.py",
        "tests/memory/test_undo.py",
        "tests/memory/test_growth.py",
        "tests/store/test_power.py",
        "tests/cli/test_memory.py",
    ),
    "store/keys": ("tests/store/test_names.py", "tests/store/test_folder.py"),
    "store/lock": ("tests/store/test_lock.py", "tests/memory/test_held_up.py"),
    "store/consolidation": ("tests/store/test_consolidation.py", "tests/store/test_power.py"),
    "store/lists": (
        "tests/store/test_lists.py",
        "tests/store/test_learned.py",
        "tests/upkeep/test_forget.py",
        "tests/store/test_power.py",
        "tests/cli/test_memory.py",
    ),
    "store/home": ("tests/store/test_home.py",),
    "team/sync": ("tests/team/test_plan.py",),
    "team/round": ("tests/team/test_round.py", "tests/team/test_sync_faults.py"),
    "team/folder": ("tests/team/test_round.py", "tests/team/test_sync_faults.py"),
    "store/fences": ("tests/fleet/test_fences.py",),
    "tools/guard": (
        "tests/tools/test_confined.py",
        "tests/tools/test_guard.py",
        "tests/tools/test_private.py",
    ),
    "tools/confined": (
        "tests/tools/test_confined.py",
        "tests/tools/test_guard.py",
        "tests/tools/test_private.py",
    ),
    "tools/places": ("tests/tools/test_files.py", "tests/tools/test_private.py"),
    "memory/paths": ("tests/memory/test_paths.py", "tests/threats/test_paths.py"),
    "memory/secrets/scanner": (
        "tests/memory/test_secrets.py",
        "tests/memory/test_secrets_disguised.py",
        "tests/memory/test_secrets_bounded.py",
        "tests/memory/test_secrets_untold.py",
    ),
    "memory/secrets/views": (
        "tests/memory/test_secrets.py",
        "tests/memory/test_secrets_disguised.py",
        "tests/memory/test_secrets_bounded.py",
        "tests/memory/test_secrets_untold.py",
    ),
    "session/loop": (
        "tests/loop/test_loop.py",
        "tests/loop/test_streams.py",
        "tests/loop/test_stops.py",
        "tests/loop/test_hooks.py",
        "tests/loop/test_repeats.py",
        "tests/loop/test_long.py",
        "tests/loop/test_blocking.py",
        "tests/loop/test_cancel.py",
        "tests/session/test_fork.py",
    ),
    "middleware/chain": ("tests/proxy/test_matching.py",),
    "middleware/following": ("tests/proxy/test_matching.py",),
    "middleware/decisions": ("tests/proxy/test_matching.py",),
    "middleware/scanning": (
        "tests/proxy/test_scanning.py",
        "tests/proxy/test_matching.py",
        "tests/proxy/test_rules.py",
        "tests/proxy/test_shadows.py",
    ),
    "middleware/log": ("tests/proxy/test_log_faults.py",),
}
_POWER = ("tests/store/test_power.py",)
NAMED = (
    Mutation(
        "what an editor wrote is noted, but not on the disk",
        "src/reverie/store/history.py",
        "        self.append(lines, durable=True)\n",
        "        self.append(lines)\n",
        _POWER,
    ),
    Mutation(
        "the plan of a landing is not on the disk",
        "src/reverie/store/landing.py",
        "memories.beside.write(PLAN, plan.encode())",
        "memories.beside.write(PLAN, plan.encode(), durable=False)",
        _POWER,
    ),
    Mutation(
        "the lock of a dream is not on the disk",
        "src/reverie/store/consolidation.py",
        "                    os.fsync(fd)\n",
        "                    pass\n",
        _POWER,
    ),
    Mutation(
        "the name of a dream's lock is not on the disk",
        "src/reverie/store/consolidation.py",
        "                flush_folder(self.path.parent)\n",
        "                pass\n",
        _POWER,
    ),
    Mutation(
        "a new root folder is not on the disk",
        "src/reverie/store/keys.py",
        "        flush_directory(above)\n",
        "        pass\n",
        _POWER,
    ),
    Mutation(
        "a removal is not on the disk",
        "src/reverie/store/files.py",
        "            if durable:\n                flush_directory(at)\n",
        "",
        _POWER,
    ),
    Mutation(
        "a line is added before the log says so for good",
        "src/reverie/store/long_index.py",
        "history.append([encode(step)], durable=True)",
        "history.append([encode(step)])",
        _POWER,
    ),
    Mutation(
        "a line that was added is not on the disk",
        "src/reverie/store/growing.py",
        "        append_whole(fd, line)\n        flush_file(fd)\n",
        "        append_whole(fd, line)\n",
        _POWER,
    ),
)
"""Damages that a disk alone would show, beside those of the manifest."""
