"""How many of the secrets that stand in typical commands are hidden, and that harmless commands are shown as they are.

Every value is made up. In a command, what stands between « and » is the secret.
"""

from tests.rows import each_row
from whisper_tui.model.secrets import MASK, masked

NEEDED = 115
"""Of the secrets, so many have to be hidden."""

SECRETS = r"""
PASSWORD=«hunter2x9» ./run
export DB_PASSWORD='«correct horse»'
GITHUB_TOKEN=«0123456789abcdef» gh pr list
env API_KEY=«k3yk3yk3y» ./deploy
export AWS_SECRET_ACCESS_KEY=«wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY»
AWS_SESSION_TOKEN=«FwoGZXIvYXdzEJr» aws s3 ls
PGPASSWORD=«pg-s3cret» psql -h db
MYSQL_PWD=«my-s3cret» mysql -u root
REDISCLI_AUTH=«redispw1» redis-cli ping
SSHPASS=«sshpw99» sshpass -e ssh host
SECRET_KEY_BASE=«8f2d1c4b5a69788796a5b4c3d2e1f001» rails s
DJANGO_SECRET_KEY=«dj-x1y2z3» python manage.py
NPM_TOKEN=«npmtok123456» npm publish
CLOUDFLARE_API_TOKEN=«cf_abc123def456» wrangler deploy
VAULT_TOKEN=«hvs.CAESIJ1234567890abcdefghijklmnop» vault read x
ENCRYPTION_KEY=«0011223344556677» ./run
RESTIC_PASSWORD=«resticpw» restic backup .
ANSIBLE_VAULT_PASSWORD=«vaultpw1» ansible-playbook x.yml
TF_VAR_db_password=«tfpw1234» terraform apply
BORG_PASSPHRASE=«borgpass» borg create x
curl -u admin:«adminpw» https://h/
curl --user=admin:«adminpw» https://h/
curl --user admin:«adminpw» https://h/
curl -H "Authorization: Bearer «abcDEF123456»" https://h/
curl -H 'Authorization: Basic «YWRtaW46cHc=»' https://h/
curl -H "Authorization: token «0123456789ab»" https://api.github.com
curl -H "X-Api-Key: «abc123abc»" https://h/
curl -H 'PRIVATE-TOKEN: «privtok123»' https://gitlab.example.com
curl -H "X-Auth-Token: «xauth123»" https://h/
curl -H 'Cookie: session=«c00kie12345»' https://h/
curl -b sid=«c00kie54321» https://h/
curl --cookie 'sid=«c00kie54321»; theme=dark' https://h/
curl https://user:«urlpw123»@h/path
curl 'https://h/?api_key=«qkey123»&page=1'
curl 'https://h/?access_token=«qtok123»'
curl -d 'password=«formpw12»' https://h/login
curl -d '{"password": "«jsonpw12»"}' https://h/login
curl --data '{"client_secret":"«cs123456»","x":1}' https://h/
curl --proxy-user me:«proxypw1» https://h/
curl --oauth2-bearer «oauthtok1» https://h/
curl -F token=«formtok1» https://h/
curl https://hooks.slack.com/services/«T00000000/B00000000/abcdefABCDEF012345678901»
curl -d '{}' https://discord.com/api/webhooks/123456789012345678/«abcdefghijklmnopqrstuvwxyzABCDEF0123456789_-xyz»
curl https://api.telegram.org/bot«123456789:AAabcdefghijklmnopqrstuvwxyz1234567»/sendMessage
curl 'https://acct.blob.core.windows.net/c?sv=2022&sig=«abc%2Fdef%2B123456789012345678901234567890%3D»'
curl 'https://b.s3.amazonaws.com/x?X-Amz-Credential=A&X-Amz-Signature=«0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef»'
git clone https://«0123456789abcdef0123456789abcdef01234567»@github.com/me/x
git clone https://oauth2:«gltok12345»@gitlab.com/me/x
git remote set-url origin https://me:«gitpw123»@host/x
git -c http.extraHeader="Authorization: Bearer «gitbear1»" pull
git config --global user.password «gitcfgpw»
gh auth login --with-token «ghp_abcdefghijklmnopqrstuvwxyz0123456789»
echo «ghp_abcdefghijklmnopqrstuvwxyz0123456789» | gh auth login --with-token
echo «github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz» > t
echo «glpat-abcdefghij0123456789» > t
echo «sk-ant-api03-abcdefghijklmnopqrstuvwxyz» > t
echo «sk-proj-abcdefghijklmnopqrstuvwxyz012345» > t
echo «sk_live_abcdefghijklmnop1234» > t
echo «AKIAIOSFODNN7EXAMPLE» > t
echo «AIzaSyA1234567890abcdefghijklmnopqrstuv» > t
echo «xoxb-1234567890-abcdefghijkl» > t
echo «npm_abcdefghijklmnopqrstuvwxyz0123456789» > t
echo «pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4OTAxMjM0NTY» > t
echo «hf_abcdefghijklmnopqrstuvwxyzABCDEF» > t
echo «hvs.CAESIJ1234567890abcdefghijklmnop» > t
echo «SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG» > t
echo «dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef» > t
echo «AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ» > t
echo «lin_api_abcdefghijklmnopqrstuvwxyzABCDEF01234567» > t
echo «shpat_0123456789abcdef0123456789abcdef» > t
echo «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnop» > t
mysql -uroot -p«mysqlpw1» db
mysqldump --password=«mysqlpw2» db
psql postgresql://me:«pgurlpw»@db/x
mongosh mongodb+srv://me:«mongopw»@c.example.net/x
mongodump -u me -p «mongopw2» --db x
redis-cli -a «redispw2» ping
redis-cli -u redis://:«redispw3»@h:6379
docker login -u me -p «dockerpw» r.example.com
docker login --username me --password «dockerpw2»
echo «dockerpw3» | docker login -u me --password-stdin
printf '%s' «dockerpw4» | podman login --password-stdin r.example.com
docker run -e POSTGRES_PASSWORD=«composepw» postgres
docker build --build-arg NPM_TOKEN=«buildtok1» .
kubectl create secret generic s --from-literal=password=«k8spw123»
kubectl create secret generic s --from-literal=key=«k8skey12»
kubectl create secret docker-registry r --docker-password=«k8sreg12»
kubectl --token=«k8stok12» get pods
helm install x . --set db.password=«helmpw12»
helm upgrade x . --set auth.rootPassword=«helmpw34»
az login --service-principal -u app -p «azpw1234» --tenant t
az storage blob list --account-key «azkey123456==»
az storage blob list --connection-string 'AccountName=a;AccountKey=«abcdEFGH1234567890==»'
aws configure set aws_secret_access_key «wJalrXUtnFEMI»
heroku config:set API_SECRET=«herokusec»
vercel --token «verceltok»
twine upload -u me -p «twinepw1» dist/*
npm config set //r.example.com/:_authToken «npmauth1»
npm config set //r.example.com/:_authToken=«npmauth2»
echo //r.example.com/:_authToken=«npmauth3» >> .npmrc
pip install --index-url https://me:«pipurlpw»@r.example.com/simple x
poetry config pypi-token.pypi «poetrytok1»
poetry config http-basic.r me «poetrypw1»
cargo login «ciocargotok123456»
sshpass -p «sshpw123» ssh host
sshpass -p«sshpw456» ssh host
echo «sudopw12» | sudo -S apt update
echo '«sudopw34»' | sudo -kS true
htpasswd -b .htpasswd me «htpw1234»
htpasswd -bc .htpasswd me «htpw5678»
echo 'root:«rootpw12»' | chpasswd
openssl enc -aes-256-cbc -k «opensslpw» -in f
openssl rsa -in k -passin pass:«opensslpw2»
zip -P «zippw123» a.zip f
unzip -P «zippw456» a.zip
7z x -p«7zpw1234» a.7z
gpg --batch --passphrase «gpgpw123» -d f.gpg
ldapsearch -x -D cn=admin -w «ldappw12» -b dc=x
smbclient //h/share -U me%«smbpw123»
mount -t cifs //h/s /mnt -o username=me,password=«cifspw12»
sqlcmd -S h -U sa -P «sqlpw123» -Q x
lftp -u me,«lftppw12» ftp://h
nmcli dev wifi connect home password «wifipw12»
wget --password=«wgetpw12» https://h/
http -a me:«httpiepw» https://h/
echo 'machine h login me password «netrcpw1»' > ~/.netrc
printf 'db:\n  password: «yamlpw12»\n' > c.yml
vault login «hvs.CAESIJabcdefghijklmnopqrstuv»
keytool -storepass «keypw123» -list
dotnet nuget push x --api-key «nugetkey1»
rclone config create r s3 secret_access_key «rclonekey»
""".strip().splitlines()

HARMLESS = r"""
git status
git log --author=token --oneline
git commit -m 'Add password reset: tokens expire after a day'
git clone https://github.com/me/x
git clone ssh://git@github.com/me/x
git clone git@github.com:me/x.git
git show 0123456789abcdef0123456789abcdef01234567
git config --get user.email
grep -rn 'password: ' src
grep -r "token" --include=*.py .
rg 'api_key = ' config
docker run -p 8080:80 nginx
docker ps --format '{{.Names}}'
docker login r.example.com
podman build -t x .
kubectl get secret s -o name
kubectl get pods -n token-service
kubectl create secret generic s --from-file=key.txt
kubectl -n x logs -f pod
helm install x . --set replicas=3
az vm list -o table
az login
mkdir -p a/b
cp -p a b
ssh -p 2222 host
twine upload dist/*
npm config get registry
npm config set registry https://r.example.com/
cargo login
poetry config --list
poetry config virtualenvs.in-project true
sudo -S true
echo hello | sudo tee f
echo done | tee log
htpasswd -c f me
openssl x509 -in c.pem -noout -text
openssl rand -hex 16
gpg -d f.gpg
curl https://example.com/hooks/x
curl -b cookies.txt https://h/
curl -c jar https://h/
curl --user me https://h/
curl -s 'https://h/?page=1&sort=key'
curl 'https://h/?v=1&signature_version=4'
curl https://slack.com/api/api.test
curl https://discord.com/api/v10/gateway
psql -p 5432 -U me db
mysql -u root -P 3307 db
redis-cli -p 6380 ping
ldapsearch -x -b dc=x
sqlcmd -S h -E -Q 'select 1'
smbclient //h/share -U me
lftp -u me ftp://h
nmcli dev wifi list
export PATH=/usr/bin:/bin
KEY=value make
MONKEY=banana ./zoo
export KEYBOARD=de
SORT_KEY=name ./run
PUBLIC_KEY=ssh.pub ./run
pytest -k token tests
pytest -p no:cacheprovider
ls -l token.txt
cat docs/passwords.md
sed -n 's/pass/PASS/p' f
python -c 'print(1)'
tar -xzf secrets.tar.gz
find . -name '*.key'
./run --key-file k.pem --token-file t
./run --max-tokens 100
awk -F: '{print $1}' /etc/passwd
vault status
rclone ls remote:bucket
wget https://h/a.tar.gz
PASSWORD=$(cat f) ./run
echo "$PW" | docker login --password-stdin
""".strip().splitlines()


def shown_in(line: str) -> bool:
    """Whether any secret of a line, or a part of it that is no word of everyday, can be read after masking."""
    parts = line.replace("»", "«").split("«")
    text = masked("".join(parts).replace("\\n", "\n"))
    return any(secret in text for secret in parts[1::2])


def test_nearly_all_secrets_in_typical_commands_are_hidden() -> None:
    assert len(SECRETS) >= 125
    shown = [line for line in SECRETS if shown_in(line)]
    hidden = len(SECRETS) - len(shown)
    assert hidden * 125 >= NEEDED * len(SECRETS), "\n".join(shown)


@each_row("line", SECRETS)
def test_masking_keeps_the_program_visible(line: str) -> None:
    text = masked(line.replace("«", "").replace("»", ""))
    assert not text.startswith(MASK) and len(text) >= 8


@each_row("line", HARMLESS)
def test_a_harmless_command_is_shown_as_it_is(line: str) -> None:
    assert masked(line) == line
