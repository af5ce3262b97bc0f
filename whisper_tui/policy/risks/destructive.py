"""Commands that delete, overwrite, move or publish, and what their file operands come to."""

import re
from collections.abc import Sequence

from whisper_tui.policy.commands.argv import (
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    short_or_long,
)
from whisper_tui.policy.risks.command_table import find_entries

SYSTEM_PLACES = re.compile(
    r"/+(?:(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library)/*)?(?:\*|\.)?\Z"
)
"""The top of the file system, or a directory right below it."""


def remove(argv: Words) -> list[Danger]:
    """`rm`: recursive, or without confirmation."""
    at = short_or_long(argv, "rRf", ("recursive", "force", "no-preserve-root"))
    if at is None:
        return []
    rest = argv[1:] if "--" not in argv else argv[1 : argv.index("--")]
    options = [word for word in rest if word is not None and word.startswith("-")]
    recursive = any(long_option(word, "recursive") or set(letters(word)) & set("rR") for word in options)
    forced = any(long_option(word, "force") or "f" in letters(word) for word in options)
    how = " ".join(("recursively",) * recursive + ("without confirmation",) * forced) or "without protection of /"
    sentence = f"Deletes {how} (`{' '.join(('rm', *options))}`)"
    # without a terminal, plain `rm` does not ask either: named files are no more at risk with -f
    if forced and not recursive and "--no-preserve-root" not in options:
        return [Danger("deletes-files", sentence, at)]
    return [Danger("destructive", sentence, at)]


def remove_matching(patterns: Sequence[tuple[int, str]]) -> list[Danger]:
    """`rm *`: files whose names are not written out."""
    for at, pattern in patterns:
        everything = not pattern.rstrip("/").rsplit("/", 1)[-1].strip("*?.")
        if everything:
            return [Danger("destructive", f"Deletes every file that matches (`rm {pattern}`)", at)]
    at, pattern = patterns[0]
    return [Danger("deletes-files", f"Deletes every file that matches (`rm {pattern}`)", at)]


def remove_directory(argv: Words) -> list[Danger]:
    """`rmdir` of a directory that the system needs."""
    return [
        Danger("destructive", f"Removes {place}, a directory of the system", index)
        for index, place in operands(argv)
        if SYSTEM_PLACES.match(place)
    ]


def find(argv: Words) -> list[Danger]:
    """`find`: actions that delete, write or run commands."""
    found = []
    for index, word in enumerate(argv):
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            found.append(Danger("runs-other-code", f"Runs a command for each file (`find {word}`)", index))
        elif word == "-delete":
            found.append(Danger("destructive", "Deletes every file that matches (`find -delete`)", index))
        elif word in {"-fprint", "-fprint0", "-fprintf", "-fls"}:
            found.append(Danger("writes-file", f"Overwrites a file (`find {word}`)", index))
    return found


def disk(argv: Words) -> list[Danger]:
    """`dd`: writing over a file or a device."""
    return [
        Danger("destructive", f"Overwrites {word[3:]} (`dd`)", index)
        for index, word in enumerate(argv)
        if word is not None and word.startswith("of=")
    ]


def only_help(argv: Words) -> bool:
    """True if a program is only asked for its help or version."""
    return len(argv) == 2 and argv[1] in {"--help", "--version", "-V"}


def sort(argv: Words) -> list[Danger]:
    """`sort`: an output file, or a compressor."""
    for index, word in before_end_of_options(argv):
        if "o" in letters(word, "kStTo") or long_option(word, "output"):
            return [Danger("writes-file", f"Writes its result to a file (`sort {word}`)", index)]
        if long_option(word, "compress-program"):
            return [Danger("runs-other-code", "Runs another program as its compressor", index)]
    return []


def encoded(argv: Words) -> list[Danger]:
    """`base64 -o`, which writes a file."""
    # only the base64 of macOS has -o
    at = short_or_long(argv, "o", ("output",), valued="wbioD")
    return [] if at is None else [Danger("writes-file", "Writes its result to a file (`base64 -o`)", at)]


DELETES = """
docker system prune
docker * prune
docker volume rm
docker rm -f --force
docker rmi -f --force
docker network rm
docker stack rm
docker swarm leave
docker compose down -v --volumes --rmi
podman compose down -v --volumes --rmi
podman system prune
podman system reset
podman * prune
podman volume rm
podman rm -f --force
podman rmi -f --force
kubectl delete
kubectl drain
kubectl replace --force
kubectl scale --replicas=0
kubectl rollout undo
oc delete
helm uninstall
helm rollback
terraform destroy
terraform apply -destroy --destroy -auto-approve --auto-approve
terraform state rm
terraform state mv
terraform taint
terraform workspace delete
terraform force-unlock
tofu destroy
tofu state rm
pulumi destroy
pulumi stack rm
pulumi refresh
cdk destroy
cdktf destroy
serverless remove
sls remove
sam delete
eksctl delete *
vagrant destroy
packer build -force --force
ansible-playbook
aws s3 rm
aws s3 rb
aws s3 mv
aws s3 sync --delete
aws * delete-*
aws * terminate-*
aws * remove-*
aws * deregister-*
aws * purge-*
aws * stop-*
aws * reboot-*
aws * detach-*
aws * revoke-*
aws * disable-*
gcloud * delete
gcloud * * delete
gcloud * * * delete
gsutil rm
gsutil rb
gsutil rsync -d
az * delete
az * * delete
az * * * delete
az * purge
doctl * delete
doctl * * delete
heroku apps:destroy
heroku pg:reset
heroku destroy
fly apps destroy
vercel remove
netlify sites:delete
wrangler delete
wrangler * delete
firebase *:delete
supabase db reset
gh repo delete
gh repo archive
gh release delete
gh secret delete
gh variable delete
gh ssh-key delete
gh gpg-key delete
gh workflow disable
gh run delete
gh run cancel
gh cache delete
gh issue delete
gh label delete
gh api -X --method -f -F --field --raw-field --input
glab repo delete
glab project delete
glab release delete
glab variable delete
npm unpublish
npm deprecate
npm owner rm
npm cache clean --force -f
npm publish
yarn publish
pnpm publish
cargo publish
cargo yank
gem yank
gem push
twine upload
poetry publish
uv publish
pip uninstall -y --yes
apt purge
apt remove
apt autoremove
apt-get purge
apt-get remove
apt-get autoremove
dnf remove
yum remove
pacman -R* -S*c*
brew uninstall
snap remove
systemctl stop
systemctl disable
systemctl mask
systemctl kill
systemctl reboot
systemctl poweroff
systemctl halt
systemctl restart
systemctl isolate
service * stop
service * restart
launchctl remove
launchctl unload
launchctl bootout
rclone delete
rclone purge
rclone sync
rclone deletefile
rclone rmdirs
rclone cleanup
restic forget
restic prune
borg delete
borg prune
zfs destroy
zfs rollback
zpool destroy
lvremove
vgremove
pvremove
btrfs subvolume delete
cryptsetup luksFormat
cryptsetup erase
mdadm --zero-superblock --stop -S
redis-cli FLUSHALL
redis-cli FLUSHDB
redis-cli flushall
redis-cli flushdb
redis-cli CONFIG
redis-cli SHUTDOWN
rails,rake db:drop*
rails,rake db:reset*
rails,rake db:purge*
rails,rake db:rollback*
rails,rake db:migrate:reset*
rails,rake db:migrate:down*
rails,rake db:migrate:redo*
rails,rake db:schema:load*
rails,rake db:structure:load*
rails,rake db:truncate*
rails,rake db:seed:replant*
rails,rake db:test:purge*
prisma migrate reset
prisma db push --force-reset --accept-data-loss
manage.py,django-admin flush
manage.py,django-admin reset_db
manage.py,django-admin migrate * zero
alembic downgrade
flask db downgrade
knex migrate:rollback
knex migrate:down
sequelize,sequelize-cli db:drop
sequelize,sequelize-cli db:migrate:undo*
sequelize,sequelize-cli db:seed:undo*
typeorm schema:drop
typeorm migration:revert
drizzle-kit drop
drizzle-kit push --force
mikro-orm schema:drop
mikro-orm schema:fresh
mikro-orm migration:down
artisan migrate:fresh
artisan migrate:reset
artisan migrate:refresh
artisan migrate:rollback
artisan db:wipe
ace migration:fresh
ace migration:reset
ace migration:refresh
ace migration:rollback
ace db:wipe
ace db:truncate
console doctrine:database:drop
console doctrine:schema:drop
console d:d:d
mix ecto.drop
mix ecto.reset
mix ecto.rollback
diesel database reset
diesel database drop
diesel migration revert
diesel migration redo
sqlx database drop
sqlx database reset
sqlx migrate revert
sea-orm-cli migrate fresh
sea-orm-cli migrate reset
sea-orm-cli migrate refresh
sea-orm-cli migrate down
goose down
goose down-to
goose reset
goose redo
migrate down
migrate drop
flyway clean
flyway undo
liquibase drop*
liquibase rollback*
dbmate drop
dbmate down
dbmate rollback
atlas schema clean
wp db reset
wp db drop
wp db clean
drush sql-drop
drush sql:drop
drush site-install
dotnet ef database drop
dropuser
mysqladmin drop
mongosh --eval
mongo --eval
rabbitmqctl reset
rabbitmqctl force_reset
rabbitmqctl delete_*
kafka-topics --delete
kafka-topics.sh --delete
etcdctl del
vault delete
vault * delete
vault * destroy
consul kv delete
nomad job stop
nomad system gc
tmutil delete
diskutil erase*
userdel
groupdel
deluser
passwd
usermod
visudo
crontab -r
at -d -r
atrm
iptables -F --flush -X -P
ip6tables -F --flush -X
nft flush
nft delete
ufw disable
ufw reset
firewall-cmd --remove-service --panic-on
history -c
tmux kill-server
tmux kill-session
screen -X
ip link set
ip link del*
ip route del*
ip addr del*
journalctl --vacuum-size --vacuum-time --vacuum-files --rotate
logrotate -f --force
rsync --delete --delete-before --delete-after --delete-during --delete-excluded --remove-source-files --del
ssh-keygen -R
ssh-add -D
gpg --delete-keys --delete-secret-keys --delete-secret-and-public-key
security delete-*
defaults delete
osascript
"""
"""A line: program, operands as patterns, and options of which one is required if there are any."""


_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|index|view|user|role|column|keyspace)|truncate\s+(?:table\s+)?\w|delete\s+from\s+[\w.\"`]+\s*(?:;|\Z)|"
    r"alter\s+table\s+\S+\s+drop|dropDatabase|deleteMany|\.drop\(|flushall|flushdb)",
    re.IGNORECASE,
)
_DATABASES = frozenset(
    "psql mysql mariadb sqlite3 mongosh mongo cqlsh clickhouse-client sqlcmd duckdb redis-cli".split()
)


def deletes(argv: Words, name: str) -> list[Danger]:
    """Return the subcommand or option of a command that deletes or stops something."""
    found = next(find_entries(DELETES, argv, name), None)
    if found is None:
        return []
    verb = found.entry.words[-1] if found.entry.words else ""
    line = " ".join((found.program, *found.entry.words))
    if effect := _RECOVERABLE.get(line):
        return [Danger("interrupts", f"{effect} (`{found.shown}`)", found.at)]
    effects = (said for pattern, said in _EFFECTS if pattern.search(f"{verb} {found.option}"))
    sentence = _SAYS.get(line) or _OF_DATABASES.get(found.program) or next(effects, None)
    sentence = sentence or _LOSSES.get(found.program, "Deletes or overwrites data")
    return [Danger("destructive", f"{sentence} (`{found.shown}`)", found.at)]


_RECOVERABLE = {
    "systemctl restart": "Restarts a service",
    "service * restart": "Restarts a service",
    "gh run cancel": "Cancels a run",
    "kubectl rollout undo": "Rolls back a deployment",
    "ssh-keygen": "Forgets the key of a host",
}
_SAYS = {
    "docker compose down": "Stops containers, and deletes their volumes or images",
    "podman compose down": "Stops containers, and deletes their volumes or images",
}
"""The effects of single lines of the table."""
_OF_DATABASES = dict.fromkeys(
    "rails rake prisma manage.py django-admin alembic flask knex sequelize sequelize-cli typeorm drizzle-kit mikro-orm "
    "artisan ace console mix diesel sqlx sea-orm-cli goose migrate flyway liquibase dbmate atlas wp drush dotnet".split(),
    "Deletes or resets data of a database",
)
_EFFECTS = (
    (re.compile(r"publish|upload|push|yank|deprecate"), "Publishes or withdraws a package"),
    (
        re.compile(r"stop|kill|reboot|poweroff|halt|isolate|disable|mask|drain|down|SHUTDOWN"),
        "Stops something that runs",
    ),
    (re.compile(r"uninstall|remove$|purge|erase|autoremove"), "Removes something that is installed or deployed"),
)
_LOSSES = {
    name: loss
    for names, loss in (
        ("kubectl helm", "Destroys cluster resources"),
        ("terraform tofu pulumi", "Destroys deployed infrastructure"),
        ("aws gcloud gsutil az doctl heroku fly", "Deletes resources in the cloud"),
        ("docker podman", "Removes containers, images, networks or volumes"),
        ("rsync rclone", "Deletes files that the source does not have"),
        ("passwd usermod userdel groupdel deluser visudo", "Changes or deletes accounts of this machine"),
        ("crontab at atrm", "Removes scheduled commands"),
        ("iptables ip6tables nft ufw firewall-cmd", "Changes the firewall"),
        ("history", "Clears the history of the shell"),
    )
    for name in names.split()
}


def database(argv: Words, name: str) -> list[Danger]:
    """Return the deleting statements in arguments of a database client."""
    if name not in _DATABASES:
        return []
    return [
        Danger("destructive", f"Deletes data (`{' '.join(statement[0].split()[:2])}`)", index)
        for index, word in enumerate(argv)
        if index and word is not None and (statement := _SQL.search(word))
    ]


def overwrites_device(argv: Words) -> list[Danger]:
    """`mv` and `cp` onto a device."""
    named = operands(argv)
    if named and named[-1][1].startswith("/dev/") and named[-1][1] not in {"/dev/stdout", "/dev/stderr"}:
        return [Danger("destructive", f"Overwrites the device {named[-1][1]}", named[-1][0])]
    return []


def truncates(argv: Words) -> list[Danger]:
    """`truncate -s`."""
    return [
        Danger("destructive", "Truncates a file (`truncate -s`)", index)
        for index, word in enumerate(argv)
        if word and index and (word.startswith("-s") or long_option(word, "size"))
    ][:1]
