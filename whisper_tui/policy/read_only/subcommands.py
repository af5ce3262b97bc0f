"""Programs of many subcommands: those that only show something, with their options.

`program: subcommands | letters | names | notes`; subcommands are patterns for the first words, separated by commas.
What reads a project's own programs, plug-ins or settings before it answers is not here (npm, go, terraform, rustup, hg,
composer, the shims of asdf and pyenv), neither is what sends its words or a secret to a server that the project names
(`npm ls`, `svn log`, `pulumi`), runs what a format says (`tmux display-message`), or shows what is usually secret
(`docker inspect`, `helm get`, `heroku config`, `az … keys list`).
"""

SUBCOMMANDS = """
docker podman nerdctl: ps, images, version, info, image ls, image list, container ls, container list,
    volume ls, network ls, system df, context ls, context show, compose ls, compose version, buildx ls
    | aqlsf:n: | all quiet no-trunc latest size filter= format= last= digests limit= verbose
docker podman nerdctl: history *, port *, diff *, image history *, container port *, container diff *,
    volume inspect *, network inspect * | f:sHq | format= size human? no-trunc quiet
docker podman nerdctl: logs *, container logs *, stats, stats *, container stats *
    | ftn:a | follow tail= since= until= timestamps details no-stream all no-trunc format=
kubectl oc: get *, describe *, api-resources, api-versions, cluster-info, version, explain *, top *, config get-contexts,
    config current-context, config get-clusters, auth can-i *, rollout status *, rollout history *, events
    | Ao:l:n:wL: | all-namespaces output= selector= namespace= watch show-labels label-columns= no-headers sort-by=
    field-selector= context= client short recursive containers minify api-group= namespaced? verbs= list revision=
    show-events? show-kind ignore-not-found
kubectl oc: logs * | fpc:n:l: | follow previous container= namespace= tail= since= since-time= timestamps all-containers
    selector= prefix max-log-requests= context=
helm: list, ls, status *, history *, version, search repo *, repo list
    | an:o: | all all-namespaces namespace= output= revision= max= short date filter= | most=3
pip pip3: list, show *, freeze, check, cache dir, cache info, help, help *
    | lv | local user format= exclude= not-required include-editable files all verbose disable-pip-version-check
conda mamba: list, env list | e | json name= export no-pip
gcloud: projects list, compute instances list, compute zones list, compute regions list, compute disks list,
    compute networks list, container clusters list, services list, config list, config get *, config get-value *, info,
    version, auth list
    | q | project= format= filter= limit= region= zone= zones= regions= sort-by= uri quiet page-size= account=
az: account list, account show, account list-locations, group list, group show, vm list, vm show, aks list, acr list,
    network vnet list, storage account list, resource list, version
    | g:n:o: | resource-group= name= output= query= subscription= only-show-errors all
gem: list, list *, info *, environment, which *, contents *, dependency * | aldv | local all versions
apt: list, list *, show *, search *, policy, policy *, depends *, rdepends * | a | installed upgradable all-versions
apt-cache: search *, show *, policy, policy *, depends *, rdepends *, showpkg *, madison *, stats, pkgnames
    | n | names-only installed recurse no-recommends
snap: list, list *, info *, find *, version | | all
flatpak: list, info *, search *, remotes | d | app runtime show-details
systemctl: status, status *, list-units, list-units *, list-unit-files, list-unit-files *, list-timers, list-sockets,
    list-dependencies, list-dependencies *, list-jobs, is-active *, is-enabled *, is-failed *, is-system-running, cat *,
    get-default
    | alqt:n:p:o: | all full quiet user system no-pager no-legend plain type= state= failed lines= property= output=
    value reverse after before
loginctl: list-sessions, list-users, session-status *, user-status *, show-session * | ap: | no-pager property= all
hostnamectl timedatectl localectl: status, show
gh: pr list, pr view, pr view *, pr status, pr diff, pr diff *, pr checks, pr checks *, issue list, issue view *,
    issue status, repo view, repo view *, repo list, repo list *, release list, release view, release view *, run list,
    run view *, workflow list, workflow view *, search *, status, label list, gist list, gist view *,
    secret list, variable list, cache list, ruleset list, ruleset view *, org list, project list, project view *
    | L:R:S:s:A:a:B:H:q:t:l:cedv | limit= repo= search= state= author= assignee= base= head= jq= template= label= json=
    comments draft archived fork language= license= visibility= owner= sort= order= topic= stars= created= updated=
    pushed= followers= size= match= log log-failed job= exit-status verbose attempt= required name-only patch color=
    milestone= mention= app= branch= commit= event= status= user= source active hostname= raw files filename= yaml
    merged reviewed-by= review= review-requested= involves= commenter= interactions= reactions= checks= closed=
    no-assignee no-label no-milestone no-project include-prs include-forks= good-first-issues= help-wanted-issues=
    number-topics= forks= author-date= committer= committer-date= extension= exclude-drafts exclude-pre-releases
ollama: list, ps, show *
tmux: ls, list-sessions, list-windows, list-panes | ast: |
screen: -ls
rabbitmqctl: status, list_queues, list_exchanges, list_bindings, list_users, list_vhosts, cluster_status | qp: |
redis-cli: info, dbsize, ping
nmcli: device status, device show, connection show, general status, radio, device wifi list | tf: | terse fields=
resolvectl: status, statistics
"""
