// Written by whisper-tui install opencode, removed by whisper-tui uninstall opencode.
// Commands, edits, fetches and the tools of other servers are judged in whisper_tui. If anything fails here, the call
// is not made.
import { spawn } from "node:child_process"
import { resolve as absolute } from "node:path"

const HOOK = []
const COMMANDS_ONLY = false
// The shell of the tool bash, whatever the settings of a project name.
const GATE = ""
// Told to the model, unless the tools of whisper_tui tell it.
const CONTEXT = ""
// Tools that neither change nor send anything.
const QUIET = new Set([
  "read", "list", "glob", "grep", "todoread", "todowrite", "skill", "question", "lsp", "invalid", "plan_exit",
])
let servers = []
const notes = new Map()
// The calls, by their ids, about which OpenCode does not have to ask again.
const decided = new Map()
// The arguments with which each call was allowed, by its id, to be compared with those that it was made with.
const allowed = new Map()
const MOST_ALLOWED = 1000
const asking = new Set()
process.on("exit", () => asking.forEach((child) => child.kill()))

function ask(input, ...options) {
  return new Promise((resolve, reject) => {
    const child = spawn(HOOK[0], [...HOOK.slice(1), ...options], { stdio: ["pipe", "pipe", "pipe"] })
    asking.add(child)
    const out = []
    const err = []
    child.stdout.on("data", (piece) => out.push(piece))
    child.stderr.on("data", (piece) => err.push(piece))
    child.stdin.on("error", () => {})
    child.on("error", (error) => reject(new Error(`the hook of whisper_tui cannot be started, so nothing was run: ${error.message}`)))
    child.on("close", (code) => {
      asking.delete(child)
      try {
        if (code !== 0) throw new Error(`exit code ${code}`)
        resolve(JSON.parse(Buffer.concat(out).toString("utf8")))
      } catch (error) {
        const errorText = Buffer.concat(err).toString("utf8").trim()
        reject(new Error(`whisper_tui gave no answer, so nothing was run: ${errorText || error.message}`))
      }
    })
    child.stdin.end(JSON.stringify(input))
  })
}

// With the names in one order, because other plugins may set them anew.
function written(value) {
  const sorted = (_, each) =>
    each && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([first], [second]) => (first < second ? -1 : 1)))
      : each
  return JSON.stringify(value, sorted)
}

// Another plugin may have changed a call after it was allowed. Whatever fails here holds nothing up.
async function compare(input, directory) {
  const given = allowed.get(input.callID)
  if (given === undefined || !input.args || written(input.args) === given) return ""
  const content = {
    hook_event_name: "tool.execute.after",
    session_id: input.sessionID,
    call_id: input.callID,
    cwd: directory,
    pid: process.pid,
    tool_name: input.tool,
    tool_input: input.args,
  }
  return await ask(content, "--after").then((answer) => answer?.note ?? "").catch(() => "")
}

// The tools of whisper_tui wait in its queue by themselves.
function isOurs(tool) {
  const prefixes = servers.map((name) => `${name.replace(/[^A-Za-z0-9_-]/g, "_")}_`)
  const [longest] = prefixes.filter((prefix) => tool.startsWith(prefix)).sort((a, b) => b.length - a.length)
  return longest === "whisper_" && /^[a-z]/i.test(tool.slice(longest.length))
}

function passes(tool) {
  return tool !== "bash" && (COMMANDS_ONLY || QUIET.has(tool) || isOurs(tool))
}

function filesOf({ tool, args }, directory) {
  const named = tool === "apply_patch"
    ? [...String(args.patchText).matchAll(/^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*)$/gm)].map((found) => found[1].trim())
    : [args.filePath]
  return named.filter((name) => typeof name === "string").map((name) => absolute(directory, name))
}

// A question of OpenCode that belongs to a call which was decided. Ids alone are not enough: some models number their
// calls from zero in each answer, and another plugin may have changed the call since.
function isAbout(call, { sessionID, permission, metadata }, directory) {
  if (call === undefined || call.session !== sessionID) return false
  if ([call.args, call.output.args].some((now) => written(now) !== call.given)) return false
  const isEdit = ["edit", "multiedit", "write", "apply_patch"].includes(call.tool)
  if (permission === "edit") return isEdit
  if (permission !== "external_directory") return permission === call.tool
  if (call.tool === "bash") return metadata?.command === call.args.command
  return isEdit && filesOf(call, directory).includes(metadata?.filepath)
}

export const WhisperTui = async ({ client, directory }) => ({
  config: async (config) => {
    servers = Object.keys(config?.mcp ?? {})
    if (!GATE || !config) return
    // Plugins that are loaded later, such as those of a project, get the same object, and may name another shell in it.
    Object.defineProperty(config, "shell", { get: () => GATE, set: () => {}, enumerable: true })
  },
  "shell.env": async (input, output) => {
    if (GATE && input.sessionID) output.env.WHISPER_TUI_SESSION = input.sessionID
  },
  "experimental.chat.system.transform": async (input, output) => {
    // Without a session, the model is asked for something beside the conversation.
    if (CONTEXT && input.sessionID) output.system.push(CONTEXT)
  },
  // OpenCode asks about files outside of its workspace, and where its settings say so, after this plugin has answered.
  // Without an answer from here, its own question stays (decision 28).
  event: async ({ event }) => {
    if (event.type !== "permission.asked") return
    const asked = event.properties
    if (!isAbout(decided.get(asked.tool?.callID), asked, directory)) return
    const path = { id: asked.sessionID, permissionID: asked.id }
    await client.postSessionIdPermissionsPermissionId({ path, body: { response: "once" } }).catch(() => {})
  },
  "tool.execute.before": async (input, output) => {
    decided.delete(input.callID)
    if (passes(input.tool)) return
    const answer = await ask({
      session_id: input.sessionID,
      call_id: input.callID,
      cwd: directory,
      pid: process.pid,
      servers,
      tool_name: input.tool,
      tool_input: output.args,
    })
    if (answer === null || answer.decision !== "allow" || typeof answer.arguments !== "object" || !answer.arguments) {
      throw new Error((answer && answer.reason) || "whisper_tui did not allow it, so nothing was run")
    }
    for (const name of Object.keys(output.args)) {
      if (!(name in answer.arguments)) delete output.args[name]
    }
    Object.assign(output.args, answer.arguments)
    const given = written(output.args)
    if (answer.decided === true) {
      decided.set(input.callID, { session: input.sessionID, tool: input.tool, args: output.args, output, given })
    }
    allowed.delete(input.callID)
    allowed.set(input.callID, given)
    if (allowed.size > MOST_ALLOWED) allowed.delete(allowed.keys().next().value)
    if (answer.note) notes.set(input.callID, answer.note)
  },
  "tool.execute.after": async (input, output) => {
    decided.delete(input.callID)
    const found = [notes.get(input.callID), await compare(input, directory)].filter(Boolean)
    notes.delete(input.callID)
    if (found.length && typeof output.output === "string") output.output = [...found, output.output].join("\n")
  },
})
