// Makes DOM elements. Text is always text: nothing from a message is read as HTML.

// h("td.number", {title: "..."}, "1.5x"): a tag with classes, attributes (functions are listeners), children.
export function h(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  put(made, ...children);
  return made;
}

export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

export function replace(parent, ...children) {
  parent.replaceChildren();
  return put(parent, ...children);
}

// Words for someone who can't see that something changed.
export function say(text) {
  const live = document.getElementById("live");
  if (live && live.textContent !== text) live.textContent = text;
}

export function section(title, ...children) {
  const id = "section-" + title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return h("section", {"aria-labelledby": id}, h("h2", {id}, title), ...children);
}

// [[name, value], ...] as a list of facts; those without a value are left out.
export function facts(rows) {
  return h("dl.facts", {}, rows.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value, note]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, note && h("small", {}, note)))));
}

export function notice(kind, title, ...more) {
  return h("div.notice." + kind, {role: kind === "error" ? "alert" : null}, h("strong", {}, title), more.length ? h("p", {}, ...more) : null);
}

export function loading(what) {
  return h("p.loading", {role: "status"}, `Loading ${what}…`);
}

export function option(value, text, chosen) {
  return h("option", {value, selected: chosen === value}, text ?? value);
}
