"""Commands that print keys, passwords or tokens: of clouds, clusters, containers, password managers and services."""

from whisper_tui.policy.commands.argv import Danger, Words
from whisper_tui.policy.commands.readings import read_words
from whisper_tui.policy.risks.command_table import find_entries

_PRINTS = """
aws secretsmanager get-secret-value
aws secretsmanager batch-get-secret-value
aws ssm get-parameter* --with-decryption
aws kms decrypt
aws kms generate-data-key*
aws sts get-session-token
aws sts get-federation-token
aws sts assume-role*
aws ecr get-login*
aws ecr-public get-login*
aws codeartifact get-authorization-token
aws iam create-access-key
aws iam create-service-specific-credential
aws ec2 create-key-pair
aws ec2 get-password-data
aws rds generate-db-auth-token
aws redshift get-cluster-credentials*
aws eks get-token
aws lambda get-function*
aws cognito-idp describe-user-pool-client
aws apigateway get-api-key* --include-value --include-values
aws configure get
aws configure export-credentials
aws sso get-role-credentials
gcloud auth print-*
gcloud auth application-default print-*
gcloud secrets versions access
gcloud iam service-accounts keys create
gcloud kms decrypt
gcloud sql generate-login-token
az account get-access-token
az keyvault secret show
az keyvault secret download
az storage account keys list
az storage account show-connection-string
az acr credential show
az cosmosdb keys list
az redis list-keys
az functionapp keys list
az webapp config connection-string list
az webapp config appsettings list
az ad sp create-for-rbac
az ad sp credential reset
az ad app credential reset
az aks get-credentials
az servicebus * keys list
gh auth token
gh auth status -t --show-token
glab auth status -t --show-token
glab token create
git credential fill
vault kv get
vault read
vault unwrap
vault print token
vault token create
vault login
kubectl,oc create token
kubectl,oc config view --raw
oc whoami -t --show-token
docker,podman,nerdctl inspect
docker,podman,nerdctl container inspect
docker,podman,nerdctl compose config
docker,podman,nerdctl compose convert
helm get values
helm get all
helm get manifest
helm get hooks
terraform,tofu output -raw --raw -json --json
terraform,tofu state pull
terraform,tofu show -json --json
pulumi config get
pulumi config --show-secrets
pulumi stack output --show-secrets
pulumi stack export
heroku config
heroku config:get
heroku auth:token
heroku pg:credentials*
fly auth token
fly tokens create
vercel env pull
netlify env:get
netlify env:list
doctl auth token
doctl kubernetes cluster kubeconfig show
supabase projects api-keys
firebase functions:secrets:access
railway variables
npm token
npm config get
op read
op item get
op document get
op inject
op signin --raw
pass show
gopass show
bw get
bw list
bw unlock --raw
bw export
lpass show
lpass export
rbw get
rbw code
keepassxc-cli show
keepassxc-cli clip
keepassxc-cli export
security find-generic-password -w -g
security find-internet-password -w -g
security dump-keychain
secret-tool lookup
secret-tool search
keyring get
chamber read
chamber export
doppler secrets
infisical secrets
infisical export
credstash get
credstash getall
berglas access
aws-vault export
sops decrypt
sops -d --decrypt
ansible-vault view
ansible-vault decrypt
age -d --decrypt
gpg --export-secret-keys --export-secret-subkeys
wg showconf
wg show * private-key
nmcli -s --show-secrets
snap get
systemctl show-environment
launchctl getenv
"""
"""Lines as `command_table` reads them."""

_SAYS_ALREADY = ("name", "wide", "-oname", "-owide", "--output=name", "--output=wide")


def prints_secrets(argv: Words, name: str) -> list[Danger]:
    """Return the words that make a command print a key, a password or a token."""
    found = next(find_entries(_PRINTS, argv, name), None)
    if found is not None:
        return [Danger("reads-secrets", f"May show keys, passwords or tokens (`{found.shown}`)", found.at)]
    if name in {"kubectl", "oc"}:
        return _of_cluster(argv, name)
    if name == "aws":
        return _user_data(argv)
    if name == "pass" and len(argv) > 1:
        return _of_pass(argv)
    return []


def _of_cluster(argv: Words, name: str) -> list[Danger]:
    """`kubectl get secret -o yaml`: without an output format, only names are shown."""
    read = read_words(argv)
    gets = any(each.word in {"get", "edit"} for each in read)
    secret = next((each.at for each in read if _is_secret(each.word)), None)
    formatted = any(word is not None and word.startswith(("-o", "--output", "--template")) for word in argv)
    only_names = any(word in _SAYS_ALREADY for word in argv)
    if not gets or secret is None or not formatted or only_names:
        return []
    return [Danger("reads-secrets", f"Shows secrets of a cluster (`{name} get {argv[secret]}`)", secret)]


def _is_secret(word: str) -> bool:
    return any(kind.partition("/")[0].partition(".")[0] in {"secret", "secrets"} for kind in word.split(","))


def _user_data(argv: Words) -> list[Danger]:
    """`aws ec2 describe-… --attribute userData`: the script of a machine's first start often holds passwords."""
    return [
        Danger("reads-secrets", "Shows the user data of a machine, which often holds passwords (`aws userData`)", at)
        for at, word in enumerate(argv)
        if at and word is not None and "userdata" in word.lower().replace("-", "")
    ][:1]


_PASS = frozenset("init ls list find search grep insert add edit generate rm remove delete mv rename cp copy git help "
                  "version --version --help otp".split())  # fmt: skip


def _of_pass(argv: Words) -> list[Danger]:
    """`pass NAME` shows a password without a subcommand."""
    first = next(((each.at, each.word) for each in read_words(argv)), None)
    if first is None or first[1] in _PASS:
        return []
    return [Danger("reads-secrets", "Shows a password (`pass`)", first[0])]
