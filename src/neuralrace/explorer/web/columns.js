// Which column of a table is what: inputs, targets, labels and the weight of samples.
// @ts-check

/** @typedef {Record<string, any>} Task the section of a study */
/** @typedef {"input" | "input label" | "target" | "target label" | "label" | "weight" | ""} Role */

/** What a column can be, in words. @type {Record<Role, string>} */
export const ROLES = {
  input: "input",
  "input label": "input and label",
  target: "target",
  "target label": "target and label",
  label: "label",
  weight: "sample weight",
  "": "left out",
};

/** The columns of every node of one end. @param {any} end @returns {Record<string, string[]>} */
function nodes(end) {
  const list = (/** @type {any} */ names) => (Array.isArray(names) ? names : [names]).filter((name) => typeof name === "string");
  if (end === null || typeof end !== "object" || Array.isArray(end)) return { "": list(end) };
  return Object.fromEntries(Object.entries(end).map(([node, names]) => [node, list(names)]));
}

/** All input columns. @param {Task} task */
export const inputsOf = (task) => Object.values(nodes(task.x)).flat();

/** All target columns. @param {Task} task */
export const targetsOf = (task) => Object.values(nodes(task.y)).flat();

/** @param {Task} task @returns {string[]} */
const labelsOf = ({ labels }) => (Array.isArray(labels) ? labels : []);

/** What a column is. @param {Task} task @param {string} name @returns {Role} */
export function roleOf(task, name) {
  const label = labelsOf(task).includes(name);
  if (inputsOf(task).includes(name)) return label ? "input label" : "input";
  if (targetsOf(task).includes(name)) return label ? "target label" : "target";
  return label ? "label" : task.weight === name ? "weight" : "";
}

/**
 * The task in which a column is something else; new inputs and targets join the first node, in the order of the
 * table.
 * @param {Task} task
 * @param {string} name
 * @param {Role} role
 * @param {string[]} order all columns of the table
 * @returns {Task}
 */
export function withRole(task, name, role, order) {
  const sorted = (/** @type {string[]} */ names) => [...names].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const put = (/** @type {any} */ end, /** @type {boolean} */ inside) => {
    const kept = Object.entries(nodes(end)).map(([node, names]) => /** @type {const} */ ([node, names.filter((one) => one !== name)]));
    const [[first, names] = ["", []], ...rest] = kept;
    const made = [/** @type {const} */ ([first, inside ? sorted([...names, name]) : names]), ...rest].filter(([, those]) => those.length);
    return made.length === 1 && made[0][0] === "" ? made[0][1] : Object.fromEntries(made);
  };
  const labels = labelsOf(task).filter((one) => one !== name);
  const { weight, scale, ...rest } = task;
  const kept = Object.entries(scale ?? {}).filter(([column]) => column !== name || role.startsWith("input"));
  return {
    ...rest,
    ...(inputsOf(task).includes(name) === role.startsWith("input") ? {} : { x: put(task.x, role.startsWith("input")) }),
    ...(targetsOf(task).includes(name) === role.startsWith("target") ? {} : { y: put(task.y, role.startsWith("target")) }),
    labels: role.endsWith("label") ? sorted([...labels, name]) : labels,
    ...(role === "weight" ? { weight: name } : weight && weight !== name ? { weight } : {}),
    ...(kept.length ? { scale: Object.fromEntries(kept) } : {}),
  };
}
