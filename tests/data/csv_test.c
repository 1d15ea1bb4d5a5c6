/* Tables as text: what is read, and mistakes by their line. */
#include "tests/data/sets.h"

#include "runtime/c/data_csv.h"

static const gp_data_field by_name[] = {
    {.name = "x", .key = "width", .dtype = GP_F32, .rank = 1, .dim = {2}},
    {.name = "y", .key = "kind", .dtype = GP_I64, .classes = 3}};
static const gp_data_field by_number[] = {
    {.name = "x", .key = "1", .dtype = GP_F32, .rank = 1, .dim = {2}},
    {.name = "y", .key = "0", .dtype = GP_I64, .classes = 3}};

static gp_data_set csv_set(const gp_data_field *field)
{
    return (gp_data_set){.name = "train",
                         .source = &gp_data_csv,
                         .path = "t.csv",
                         .field = field,
                         .fields = 2,
                         .batch = 1,
                         .slot = 1,
                         .depth = 1,
                         .last = GP_DATA_PAD};
}

static void reads(const gp_data_set *set, const char *text, int rows, const float x[][2],
                  const int64_t *y)
{
    write_file("t.csv", text, strlen(text));
    remove("t.csv.gplan-rows");
    for (int again = 0; again < 2; again++) { /* parsed, then as it was parsed */
        Opened o = open_set(set, (gp_data_start){0});
        cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
        cr_assert_eq(gp_data_samples(o.data), rows);
        for (int i = 0; i < rows; i++) {
            gp_data_slot slot;
            cr_assert_eq(gp_data_next(o.data, &slot), GP_OK);
            cr_assert_arr_eq(slot.at, x[i], 8);
            cr_assert_arr_eq(slot.at + gp_data_offset(set, 1), &y[i], 8);
            gp_data_done(o.data, &slot);
        }
        close_set(&o);
    }
}

static const float x[][2] = {{1.5f, -2}, {1e-3f, 4}};
static const int64_t y[] = {2, 0};

Test(csv, columns_are_found_by_name_and_by_number)
{
    enter_folder();
    const gp_data_set named = csv_set(by_name), numbered = csv_set(by_number);
    reads(&named, "id,kind,width,height\n7,2,1.5,-2\n8,0,1e-3,4\n", 2, x, y);
    reads(&named, "kind,\"width\", height \r\n2 ,\"1.5\",-2\r\n\r\n0,1e-3,4", 2, x, y);
    reads(&named, "\"a \"\"b\"\", \n c\",kind,width,h\n,2,1.5,-2\n\"x,y\",0,1e-3,4\n\n", 2, x, y);
    reads(&numbered, "2,1.5,-2\n0,1e-3,4\n", 2, x, y);
    reads(&numbered, "kind,width,height\n2,1.5,-2\n0,1e-3,4\n", 2, x, y);
}

Test(csv, mistakes_are_named_by_their_line)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"id,kind,height\n1,2,3\n", "t.csv:1: has no column width"},
        {"kind,width,height\n2,1.5\n", "t.csv:2: has 2 cells, but x is read from columns up to 2"},
        {"kind,width,height\n2,1.5,1\n3,1,1\n", "t.csv:3: y has 3, but the model has 3 classes"},
        {"kind,width,height\n2,1.5,1\n-1,1,1\n", "t.csv:3: y has -1, but the model has 3 classes"},
        {"kind,width,height\n2,1.5,1\n\n1,1,big\n",
         "t.csv:4: column 2 (width): \"big\" is not a number of type F32"},
        {"kind,width,height\n1.5,1,1\n",
         "t.csv:2: column 0 (kind): \"1.5\" is not a number of type I64"},
        {"kind,width,height\n2,,1\n", "t.csv:2: column 1 (width): \"\" is not a number"},
        {"kind,width,height\n99999999999999999999,1,1\n", "is not a number of type I64"},
        {"kind,width,height\n", "t.csv: data train has no samples"},
        {"", "t.csv:1: has no column width"},
    };
    enter_folder();
    const gp_data_set set = csv_set(by_name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        remove("t.csv.gplan-rows");
        write_file("t.csv", rows[i].text, strlen(rows[i].text));
        refuses(&set, rows[i].says);
    }
    remove("t.csv");
    refuses(&set, "t.csv: No such file or directory");
}

Test(csv, a_table_that_changed_is_parsed_again)
{
    enter_folder();
    gp_data_set set = csv_set(by_name);
    reads(&set, "kind,width,height\n2,1.5,-2\n0,1e-3,4\n", 2, x, y);
    const char text[] = "kind,width,height\n2,1.5,-2\n";
    write_file("t.csv", text, strlen(text));
    Opened o = open_set(&set, (gp_data_start){0});
    cr_assert_eq(gp_data_samples(o.data), 1);
    close_set(&o);
    static const gp_data_field fewer[] = {
        {.name = "x", .key = "width", .dtype = GP_F32, .rank = 1, .dim = {2}},
        {.name = "y", .key = "kind", .dtype = GP_I64, .classes = 2}};
    set.field = fewer;
    refuses(&set, "t.csv:2: y has 2, but the model has 2 classes");
}

Test(csv, numbers_are_those_of_their_type)
{
    static const struct {
        const char *cell;
        int dtype, is;
        long long value;
    } rows[] = {{"255", GP_U8, 1, 255},
                {"256", GP_U8, 0, 0},
                {"-1", GP_U8, 0, 0},
                {"-128", GP_I8, 1, 0x80},
                {"-129", GP_I8, 0, 0},
                {"65535", GP_U16, 1, 65535},
                {"4294967295", GP_U32, 1, 4294967295},
                {"4294967296", GP_U32, 0, 0},
                {"-2147483648", GP_I32, 1, 2147483648},
                {"2147483648", GP_I32, 0, 0},
                {"1", GP_F16, 0, 0},
                {"0x10", GP_I32, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char to[8] = {0};
        cr_assert_eq(gp_csv_number(rows[i].cell, rows[i].dtype, to), rows[i].is, "%s",
                     rows[i].cell);
        if (rows[i].is)
            cr_assert_arr_eq(to, &rows[i].value, 8);
    }
}
