// Written by whisper-tui install opencode, removed by whisper-tui uninstall opencode.
// Every command of the shell tool waits in whisper_tui for a human. If anything fails here, the command does not run.
import { spawn } from "node:child_process"

const HOOK = []
const notes = new Map()
const asking = new Set()
process.on("exit", () => asking.forEach((child) => child.kill()))

function ask(input) {
  return new Promise((resolve, reject) => {
    const child = spawn(HOOK[0], HOOK.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
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

export const WhisperTui = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    const answer = await ask({
      session_id: input.sessionID,
      call_id: input.callID,
      cwd: directory,
      pid: process.pid,
      tool_name: "bash",
      tool_input: output.args,
    })
    if (answer === null || answer.decision !== "allow" || typeof answer.command !== "string") {
      throw new Error((answer && answer.reason) || "whisper_tui did not allow it, so nothing was run")
    }
    output.args.command = answer.command
    if (answer.note) notes.set(input.callID, answer.note)
  },
  "tool.execute.after": async (input, output) => {
    const note = notes.get(input.callID)
    if (note === undefined) return
    notes.delete(input.callID)
    output.output = `${note}\n${output.output}`
  },
})
