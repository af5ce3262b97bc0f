"""Processes, machines, containers, databases and clouds: what ends or deletes them."""

import fnmatch
import re
from typing import NamedTuple

from whisper_tui.policy.dangers.finding import Danger, Words, letters, long_option, operands


class _Entry(NamedTuple):
    words: tuple[str, ...]
    options: tuple[str, ...]


_DELETES = """
docker system prune
docker * prune
docker volume rm
docker rm -f --force
docker container rm -f --force
docker rmi -f --force
docker image rm -f --force
docker network rm
docker stack rm
docker swarm leave
docker compose down -v --volumes --rmi
docker-compose down -v --volumes --rmi
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
helm delete
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
flyctl apps destroy
flyctl destroy
fly destroy
vercel remove
vercel rm
netlify sites:delete
wrangler delete
wrangler * delete
firebase *:delete
supabase db reset
gh repo delete
gh repo archive
gh release delete
gh secret delete
gh secret remove
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
yum erase
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
dropdb
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
"""Program, its words as patterns (options between them do not count) and, behind those, options: one is needed."""


def _entries() -> dict[str, tuple[_Entry, ...]]:
    table: dict[str, list[_Entry]] = {}
    for line in _DELETES.strip().splitlines():
        program, *rest = line.split()
        words = tuple(word for word in rest if not word.startswith("-"))
        table.setdefault(program, []).append(_Entry(words, tuple(word for word in rest if word.startswith("-"))))
    return {program: tuple(entries) for program, entries in table.items()}


_TABLE = _entries()

_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|index|view|user|role|column|keyspace)|truncate\s+(?:table\s+)?\w|delete\s+from\s+[\w.\"`]+\s*(?:;|\Z)|"
    r"alter\s+table\s+\S+\s+drop|dropDatabase|deleteMany|\.drop\(|flushall|flushdb)",
    re.IGNORECASE,
)
_DATABASES = frozenset(
    "psql mysql mariadb sqlite3 mongosh mongo cqlsh clickhouse-client sqlcmd duckdb redis-cli".split()
)


def deletes(argv: Words, name: str) -> list[Danger]:
    """Subcommands and options that delete or stop something."""
    for entry in _TABLE.get(name, ()):
        named = operands(argv)
        if len(named) < len(entry.words):
            continue
        pairs = zip(named, entry.words, strict=False)
        if not all(fnmatch.fnmatchcase(word, pattern) for (_, word), pattern in pairs):
            continue
        at = named[len(entry.words) - 1][0] if entry.words else 0
        if entry.options:
            at_option = next(
                (index for index, word in enumerate(argv) if index and word and _is_option(word, entry.options)), None
            )
            if at_option is None:
                continue
            at = at_option
        return [
            Danger("destructive", f"It ends, deletes or publishes something that is hard to bring back ({name})", at)
        ]
    return []


def _is_option(word: str, options: tuple[str, ...]) -> bool:
    for option in options:
        if option.startswith("--"):
            if word == option or word.startswith(option + "="):
                return True
        elif len(option) == 2:
            if option[1] in letters(word) and len(word) <= 5:
                return True
        elif fnmatch.fnmatchcase(word, option):
            return True
    return False


def database(argv: Words, name: str) -> list[Danger]:
    """Statements that delete, given to a database's client."""
    if name not in _DATABASES:
        return []
    return [
        Danger("destructive", "It holds a statement that deletes data", index)
        for index, word in enumerate(argv)
        if index and word is not None and _SQL.search(word)
    ]


def kill(argv: Words) -> list[Danger]:
    """`kill` of everything, or of the first process."""
    named = [word for word in argv[1:] if word is not None]
    targets = [word for position, word in enumerate(named) if position > 0 or not word.startswith("-")]
    for index, word in enumerate(argv[1:], start=1):
        if word in {"-1", "1", "0"} and word in targets:
            return [Danger("ends-processes", "It ends every process that it can reach", index)]
    return []


def kill_by_name(argv: Words) -> list[Danger]:
    """`pkill` and `killall`: whatever has the name, whatever it does."""
    return (
        [Danger("ends-processes", "It ends every process of that name, whose it may be", len(argv) - 1)]
        if len(argv) > 1
        else []
    )


def moves_to_nowhere(argv: Words) -> list[Danger]:
    """`mv` and `cp` onto a device."""
    named = operands(argv)
    if named and named[-1][1].startswith("/dev/") and named[-1][1] not in {"/dev/stdout", "/dev/stderr"}:
        return [Danger("destructive", "What is written to a device is gone", named[-1][0])]
    return []


def truncates(argv: Words) -> list[Danger]:
    """`truncate`: cutting files off."""
    return [
        Danger("destructive", "It cuts a file off", index)
        for index, word in enumerate(argv)
        if word and index and (word.startswith("-s") or long_option(word, "size"))
    ][:1]
