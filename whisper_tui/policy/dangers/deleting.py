"""Subcommands and options that end, delete or publish something that is hard to bring back."""

DELETES = """
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
