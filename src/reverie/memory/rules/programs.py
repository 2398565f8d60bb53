"""Programs that people name in rules without quoting them, and words that follow them.

Names that are plain words too ("make", "go", "cat") count only with a subcommand or an option, or
where nothing else follows.
"""

from __future__ import annotations

PROGRAMS = frozenset(
    """
    git gh glab svn hg npm npx pnpm yarn bun bunx deno node nodemon tsc tsx eslint prettier jest
    vitest mocha cypress playwright vite webpack rollup esbuild turbo nx lerna expo next vercel
    netlify wrangler firebase supabase heroku fly python python3 pip pip3 pipx uv uvx poetry
    pipenv conda mamba micromamba pytest tox nox ruff black isort flake8 mypy pyright alembic
    django-admin manage.py celery jupyter cargo rustc rustup clippy gofmt golint golangci-lint
    gradle gradlew ./gradlew mvn mvnw ./mvnw sbt bazel buck cmake ctest ninja meson gcc clang
    rails rake bundle gem rspec rubocop php artisan composer phpunit mix elixir iex dotnet nuget
    msbuild swift xcodebuild pod fastlane flutter dart docker docker-compose podman buildah
    kubectl k9s helm helmfile kustomize minikube terraform tofu terragrunt pulumi ansible
    ansible-playbook vagrant packer aws gcloud az doctl sam cdk serverless psql mysql sqlite3
    mongosh mongo redis-cli pg_dump createdb dropdb prisma drizzle-kit knex sequelize typeorm
    curl wget ssh scp rsync sftp rm rmdir mv cp chmod chown sudo su doas brew apt apt-get yum
    dnf pacman apk snap killall pkill kill systemctl service crontab nohup screen tmux sed awk
    grep rg fd xargs tar zip unzip dd mkfs mount umount shutdown reboot iptables openssl gpg buf
    protoc storybook lighthouse changeset semantic-release twine hatch flit maturin act make
    just task go cat find tee tail head
    """.split()  # noqa: SIM905
)
SPOKEN = frozenset(
    """
    make just task go cat find tee tail head next fly act service screen node sam snap black mix
    dart swift kill mount pod rake gem turbo flask python expo bundle buf tar hatch rails django
    bazel
    """.split()  # noqa: SIM905
)
"""Of these, the names that a sentence may mean otherwise."""
SUBCOMMANDS = frozenset(
    """
    push pull commit add reset rebase merge checkout switch restore clean stash tag branch
    cherry-pick revert fetch clone worktree filter-branch install uninstall ci run exec test
    build publish deploy update upgrade remove audit link start dev serve watch init create
    generate migrate apply destroy plan import state taint up down stop restart rm rmi prune
    system volume image compose logs delete edit scale drain rollout auth login logout config
    set get describe rollback lint fmt format check fix clippy bench doc new db:drop db:reset
    db:migrate db:wipe db:seed migrate:fresh migrate:reset flush shell loaddata makemigrations
    collectstatic reset drop open prebuild eject sync lock self-update require dump-autoload
    ecto.reset ecto.drop ecto.migrate database ef s3 iam ec2 repo pr issue release workflow
    secret purge autoremove force-push vet mod tool db artisan database
    """.split()  # noqa: SIM905
)
