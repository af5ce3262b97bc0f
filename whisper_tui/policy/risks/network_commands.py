"""Subcommands that reach other machines, of programs that mostly work on this one."""

from whisper_tui.policy.commands.argv import Words
from whisper_tui.policy.risks.command_table import find_entries
from whisper_tui.policy.risks.host_access import uses_network

_CONNECTS = """
git push
git fetch
git pull
git clone
git ls-remote
git remote update
git submodule update
git lfs push
git lfs pull
git lfs fetch
git send-email
git svn
docker,podman,nerdctl push
docker,podman,nerdctl pull
docker,podman,nerdctl login
docker,podman,nerdctl search
docker,podman,nerdctl compose push
docker,podman,nerdctl compose pull
docker,podman,nerdctl manifest push
skopeo copy
helm install
helm upgrade
helm pull
helm push
helm repo add
helm repo update
helm dependency
npm install
npm ci
npm update
npm publish
npm view
npm audit
npm outdated
npm search
npm login
npm dist-tag
npm access
pnpm install
pnpm add
pnpm update
pnpm publish
pnpm dlx
pnpm audit
pnpm outdated
yarn install
yarn add
yarn upgrade
yarn up
yarn publish
yarn npm
yarn dlx
bun install
bun add
bun update
bun publish
pip install
pip download
pip wheel
pip index
pip search
pipx install
pipx upgrade
uv sync
uv add
uv lock
uv publish
uv pip install
uv pip sync
uv pip compile
uv tool install
uv python install
poetry install
poetry add
poetry update
poetry lock
poetry publish
pipenv install
pipenv update
pdm install
pdm add
pdm update
conda,mamba,micromamba install
conda,mamba,micromamba create
conda,mamba,micromamba update
twine upload
cargo install
cargo add
cargo update
cargo publish
cargo search
cargo fetch
cargo login
cargo owner
go get
go install
go mod download
go mod tidy
gem install
gem update
gem push
bundle install
bundle update
composer install
composer update
composer require
brew install
brew update
brew upgrade
brew tap
apt,apt-get,aptitude install
apt,apt-get,aptitude update
apt,apt-get,aptitude upgrade
apt,apt-get,aptitude dist-upgrade
apt,apt-get,aptitude full-upgrade
apt,apt-get,aptitude download
apt,apt-get,aptitude source
dnf,yum,zypper install
dnf,yum,zypper update
dnf,yum,zypper upgrade
apk add
apk update
apk upgrade
pacman -S*
snap install
snap refresh
snap find
flatpak install
flatpak update
rustup update
rustup install
rustup toolchain install
rustup component add
terraform,tofu init
terraform,tofu apply
terraform,tofu destroy
pulumi up
pulumi destroy
cdk deploy
cdk destroy
serverless deploy
sam deploy
vagrant up
vagrant box
ollama pull
ollama push
ollama run
svn checkout
svn update
svn commit
svn log
hg push
hg pull
hg clone
hg incoming
"""
"""Lines as `command_table` reads them."""

_SERVICES = frozenset(
    "vercel netlify wrangler firebase heroku fly flyctl supabase railway ngrok cloudflared surge eas vault consul "
    "nomad bw op doppler infisical ansible ansible-playbook s3cmd gsutil azcopy mosh autossh sshfs yt-dlp".split()
)
"""Programs that talk to a service on other machines."""


def reaches_network(argv: Words, name: str) -> bool:
    """True if a command may connect to other machines."""
    if len(argv) == 2 and argv[1] in {"--version", "--help", "-h", "version", "help"}:
        return False
    return uses_network(argv, name) or name in _SERVICES or any(find_entries(_CONNECTS, argv, name))
