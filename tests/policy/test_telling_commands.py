"""Commands that print secrets, reset databases or say what they delete are no harmless part of an allowed program."""

import shlex

from tests.model.build import ROOT
from tests.policy.build import a_question
from tests.policy.test_spellings import judged, risks
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.risks.command_dangers import dangers_of_argv
from whisper_tui.policy.risks.host_access import reaches_network
from whisper_tui.policy.view import view

PRINT_SECRETS = """
aws secretsmanager get-secret-value --secret-id x
aws --profile p ssm get-parameter --name x --with-decryption
aws kms decrypt --ciphertext-blob x
aws sts get-session-token
aws ecr get-login-password
aws iam create-access-key
aws ec2 describe-instance-attribute --instance-id i-1 --attribute=userData
aws ec2 describe-launch-template-versions --query LaunchTemplateVersions[].LaunchTemplateData.UserData
gh auth token
gh auth status --show-token
vault kv get secret/x
vault -address=h read x
kubectl get secret x -o yaml
kubectl -n p get secrets -ojson
kubectl get secret/x --template={{.data}}
kubectl create token x
docker inspect x
docker --context c inspect x
docker container inspect x
helm -n x get values y
terraform output -raw x
terraform -chdir=x output -json
heroku config -a x
gcloud auth print-access-token
az account get-access-token
op read op://x/y
op item get x
pass show x
pass x
security find-generic-password -w -s x
npm token list
gpg --export-secret-keys
"""


@each_row("text", PRINT_SECRETS.strip().splitlines())
def test_a_command_that_prints_secrets_has_a_risk_and_a_rule_must_name_it(text: str) -> None:
    assert "reads-secrets" in risks(text)
    assert judged(text, "never-called") == "ask"


HARMLESS = """
kubectl get secrets
kubectl get secret x -o name
kubectl get pods -o yaml
terraform output
aws ec2 describe-instances
pass ls
gh auth status
docker ps
op --version
"""


@each_row("text", HARMLESS.strip().splitlines())
def test_names_alone_are_no_secrets(text: str) -> None:
    assert "reads-secrets" not in risks(text)


RESETS = """
rails db:reset
rake db:rollback STEP=3
npx prisma migrate reset --force
npx prisma db push --accept-data-loss
python manage.py flush
python3 -m django flush
alembic downgrade base
flask db downgrade
knex migrate:rollback --all
npx sequelize-cli db:drop
php artisan migrate:refresh
php artisan db:wipe
mix ecto.drop
php bin/console doctrine:database:drop --force
sqlx database drop
migrate -path x -database y drop
dropdb x
redis-cli -h h flushall
mongosh h --eval 'db.dropDatabase()'
"""


@each_row("text", RESETS.strip().splitlines())
def test_a_reset_of_a_database_is_destructive(text: str) -> None:
    assert "destructive" in risks(text)


_VERBS = "delete destroy purge remove rm drop reset wipe disable clear erase truncate terminate revoke"
VERBS = _VERBS.split()


@each_row("verb", VERBS)
def test_an_unknown_program_is_judged_by_what_its_subcommand_says(verb: str) -> None:
    for text in (
        f"acme {verb} x",
        f"acme -p x {verb}",
        f"acme db {verb} x",
        f"./acme user-{verb} x",
        f"acme db:{verb}",
    ):
        assert "destructive" in risks(text), text
        assert judged(text, "never-called") == "ask"
        assert any(danger.sentence for danger in dangers_of_argv(tuple(shlex.split(text)), has_input=False))


@each_row("text", ["acme list", "acme a/remove", "acme undelete", "echo delete", "vim drop", "rg reset"])
def test_other_words_say_nothing(text: str) -> None:
    assert not risks(text) & {"destructive", "interrupts"}


def test_a_rule_that_names_the_subcommand_covers_it() -> None:
    dangers = dangers_of_argv(("acme", "zone", "delete", "x"), has_input=False)
    assert [danger.word for danger in dangers] == [2]


def test_a_package_that_is_removed_can_be_installed_again() -> None:
    assert risks("poetry remove x") == {"interrupts"}


@each_row(
    "text",
    [
        *("coverage erase", "nx reset", "php artisan cache:clear", "php artisan config:clear", "wp cache flush"),
        "dotnet remove package x",
    ],
)
def test_what_is_made_again_is_not_severe(text: str) -> None:
    assert risks(text) == {"interrupts"}


def test_a_question_about_the_program_itself_needs_no_network() -> None:
    assert reaches_network(("gh", "pr", "list"), "gh")
    assert not reaches_network(("gh", "--version"), "gh")
    assert reaches_network(("git", "-C", "x", "push"), "git")
    assert not reaches_network(("git", "status"), "git")


@each_row("text", ["rm *", "sudo rm *", "env A=1 rm build/*", "xargs rm *", "rm -v */"])
def test_rm_of_everything_in_a_directory_is_destructive(text: str) -> None:
    assert any("matches" in danger.sentence for _, danger in view(Shell(text=text)).dangers)
    assert "destructive" in risks(text)


@each_row(
    ("text", "found"),
    [
        ("git check-ignore .env", False),
        ("git log --oneline -- .env", False),
        ("git add .env", False),
        ("git log -p -- .env", True),
        ("git log -U5 -- .env", True),
        ("git show HEAD:.env", True),
        ("git diff .env", True),
        ("git --no-pager blame .env", True),
    ],
)
def test_git_reads_secrets_only_where_it_shows_the_content_of_files(text: str, found: bool) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    assert ("reads-secrets" in {risk.id for risk in risks_of(a_question(spec))}) is found
