for (const region of document.querySelectorAll(".ranked")) {
  const rows = [...region.querySelectorAll("tbody tr")];
  if (rows.length < 8) continue;
  const box = document.createElement("p");
  const label = document.createElement("label");
  const field = document.createElement("input");
  const found = document.createElement("output");
  box.className = "search";
  field.type = "search";
  label.append("Search ", field);
  box.append(label, found);
  region.before(box);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? ` ${shown} of ${rows.length} rows` : "";
  });
}
